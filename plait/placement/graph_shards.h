// A rank's shards of a graph and of its transpose, on which forward and backward aggregation work.
#pragma once

#include <optional>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/placement/shard.h"

namespace plait {

// Options of placing a graph.
struct ShardOptions {
  bool one_loop_each = false;  // as GCN needs it, see with_one_loop_each
  float loop_weight = 1;       // of loops that are added; ignored if the graph has no weights
  bool transposed = true;      // also the shard of the transposed graph, for gradients
  HaloKind halo = HaloKind::distinct;  // complete: for the strategy `replicate`
  bool slot_vertices = false;          // also keep the global id of each slot
  // The forward shard has the edges of each row in both directions, those that it reads along
  // first, so that both have the same slots; it is the whole of a graph that is its own transpose.
  // The edges of either direction ascend by the number of the vertex at their other end. Goes with
  // EdgeOrder::as_given; without one_loop_each and transposed.
  bool both_ways = false;
  EdgeOrder order = EdgeOrder::local_first;
};

// The shards of one rank.
struct GraphShards {
  Shard forward;
  std::optional<Shard> transposed;  // absent if not asked for, or if the graph is symmetric
  // Sum of the weights of each own row's edges (their number, if they have none).
  std::vector<float> degree;

  // Returns the shard of the transpose. The graph must be symmetric, or the transpose must have
  // been asked for.
  const Shard& backward() const { return transposed ? *transposed : forward; }
};

// Returns a rank's rows of the graph that the forward shard is made of.
template <VertexId V>
Csr<V> forward_rows(const Csr<V>& graph, bool symmetric, const Partition& partition, int rank,
                    const ShardOptions& options);
// Returns its rows of the transpose, for GraphShards::transposed.
template <VertexId V>
Csr<V> transposed_rows(const Csr<V>& graph, const Partition& partition, int rank,
                       const ShardOptions& options);

// Cuts out and places one rank's part of a graph that this process holds whole. `symmetric`: the
// graph is its own transpose. Not collective. Throws as make_shard().
GraphShards make_graph_shards(const AnyCsr& graph, bool symmetric, const Partition& partition,
                              int rank, const ShardOptions& options = {});

}  // namespace plait
