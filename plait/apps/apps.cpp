#include "plait/aggregate/rows_in_order.h"
#include "plait/apps/rows.h"

namespace plait {

std::span<const App> apps() {
  static const std::vector<App> all = {kBfs,     kComponents, kKcore, kLeiden,
                                       kLouvain, kPagerank,   kSssp,  kTriangles};
  return all;
}

std::uint64_t slot_bytes_of(const App& app, const AppSettings& settings) {
  std::uint64_t bytes = app.slot_bytes;
  for (const AppOption& option : app.options)
    if (option.slot_bytes > 0 && settings.get<bool>(option.name)) bytes += option.slot_bytes;
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
