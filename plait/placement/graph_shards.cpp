#include "plait/placement/graph_shards.h"

#include "plait/placement/own_rows.h"

namespace plait {
namespace {

// Summed in double, so that it does not depend on the order of the edges.
std::vector<float> row_sums(const auto& rows) {
  std::vector<float> sums(rows.vertices());
  for (std::uint64_t i = 0; i < rows.vertices(); ++i) {
    double sum = 0;
    for (EdgeOffset e = rows.offsets[i]; e < rows.offsets[i + 1]; ++e) sum += rows.weight(e);
    sums[i] = static_cast<float>(sum);
  }
  return sums;
}

}  // namespace

GraphShards make_graph_shards(const AnyCsr& any, bool symmetric, const Partition& partition,
                              int rank, const ShardOptions& options) {
  return std::visit(
      [&](const auto& graph) {
        const auto prepare = [&](auto rows) {
          return options.one_loop_each
                     ? with_one_loop_each(rows, partition, rank, options.loop_weight)
                     : rows;
        };
        GraphShards shards;
        const auto rows = prepare(own_rows(graph, partition, rank));
        shards.degree = row_sums(rows);
        shards.forward = make_shard(rows, partition, rank, options.halo);
        if (options.transposed && !symmetric)
          shards.transposed = make_shard(prepare(own_columns(graph, partition, rank)), partition,
                                         rank, options.halo);
        return shards;
      },
      any);
}

}  // namespace plait
