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
        const auto place = [&](const auto& some) {
          Shard shard = make_shard(some, partition, rank, options.halo, options.order);
          if (options.slot_vertices) shard.vertices = vertices_of_slots(shard, partition);
          return shard;
        };
        shards.forward = place(rows);
        if (options.transposed && !symmetric)
          // Rows of all vertices are turned round with their loops; other rows lack columns.
          shards.transposed =
              place(partition.is_whole() ? own_columns(rows, partition, rank)
                                         : prepare(own_columns(graph, partition, rank)));
        return shards;
      },
      any);
}

}  // namespace plait
