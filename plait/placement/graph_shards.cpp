#include "plait/placement/graph_shards.h"

#include "plait/placement/own_rows.h"

namespace plait {
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
