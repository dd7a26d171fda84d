#include "plait/placement/graph_shards.h"

#include "plait/placement/own_rows.h"

namespace plait {
namespace {

template <VertexId V>
Csr<V> with_loops(const Csr<V>& rows, const Partition& partition, int rank,
                  const ShardOptions& options) {
  return options.one_loop_each ? with_one_loop_each(rows, partition, rank, options.loop_weight)
                               : rows;
}

}  // namespace

template <VertexId V>
Csr<V> forward_rows(const Csr<V>& graph, bool symmetric, const Partition& partition, int rank,
                    const ShardOptions& options) {
  const Csr<V> rows = own_rows(graph, partition, rank);
  if (!options.both_ways) return with_loops(rows, partition, rank, options);
  const Csr<V> sorted = sorted_by_number(rows, partition);
  if (symmetric) return sorted;
  return rows_joined(sorted, sorted_by_number(own_columns(graph, partition, rank), partition));
}

template <VertexId V>
Csr<V> transposed_rows(const Csr<V>& graph, const Partition& partition, int rank,
                       const ShardOptions& options) {
  return with_loops(own_columns(graph, partition, rank), partition, rank, options);
}

template Csr32 forward_rows(const Csr32&, bool, const Partition&, int, const ShardOptions&);
template Csr64 forward_rows(const Csr64&, bool, const Partition&, int, const ShardOptions&);
template Csr32 transposed_rows(const Csr32&, const Partition&, int, const ShardOptions&);
template Csr64 transposed_rows(const Csr64&, const Partition&, int, const ShardOptions&);

GraphShards make_graph_shards(const AnyCsr& any, bool symmetric, const Partition& partition,
                              int rank, const ShardOptions& options) {
  return std::visit(
      [&](const auto& graph) {
        GraphShards shards;
        const auto rows = forward_rows(graph, symmetric, partition, rank, options);
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
                                         : transposed_rows(graph, partition, rank, options));
        return shards;
      },
      any);
}

}  // namespace plait
