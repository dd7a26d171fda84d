#include "plait/aggregate/rows_in_order.h"
#include "plait/apps/rows.h"

namespace plait {

std::span<const App> apps() {
  static const std::vector<App> all = {kBfs,     kComponents, kKcore, kLeiden,
                                       kLouvain, kPagerank,   kSssp,  kTriangles};
  return all;
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
