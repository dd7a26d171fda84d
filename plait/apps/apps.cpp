#include "plait/aggregate/rows_in_order.h"
#include "plait/apps/rows.h"

namespace plait {

std::span<const App> apps() {
  static const std::vector<App> all = {kBfs,     kComponents, kKcore, kLeiden,
                                       kLouvain, kPagerank,   kSssp,  kTriangles};
  return all;
}

AppBytes bytes_of(const App& app, const AppSettings& settings) {
  AppBytes bytes = app.bytes;
  for (const AppOption& option : app.options) {
    const auto* const flag = std::get_if<bool>(&option.standard);
    if (flag == nullptr || !settings.get<bool>(option.name)) continue;
    for (const auto of : {&AppBytes::per_slot, &AppBytes::per_edge, &AppBytes::per_lent_edge,
                          &AppBytes::per_thread_slot, &AppBytes::per_edge_on_host})
      bytes.*of += option.bytes.*of;
  }
  return bytes;
}

void gather_columns(World& world, const Partition& partition, AppResult& result) {
  for (AppColumn& column : result.columns)
    std::visit(
        [&](auto& values) {
          using T = typename std::remove_reference_t<decltype(values)>::value_type;
          const Buffer<T> all = rows_in_order<T>(world, partition, values, 1);
          values.assign(all.begin(), all.end());
        },
        column.values);
}

}  // namespace plait
