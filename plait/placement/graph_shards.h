// A rank's shards of a graph and of its transpose: what forward and backward aggregation work on.
#pragma once

#include <optional>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/placement/shard.h"

namespace plait {

struct ShardOptions {
  bool one_loop_each = false;          // as GCN wants it, see with_one_loop_each
  float loop_weight = 1;               // of the loops that are added; other than 1 needs weights
  bool transposed = true;              // also the shard of the transposed graph, for gradients
  HaloKind halo = HaloKind::distinct;  // complete: for the strategy `replicate`
  bool slot_vertices = false;          // also the global id of each slot
  EdgeOrder order = EdgeOrder::local_first;
};

struct GraphShards {
  Shard forward;
  std::optional<Shard> transposed;  // absent if not asked for, or if the graph is symmetric
  // Sum of the weights of each own row's edges (of their number, if they have none).
  std::vector<float> degree;

  const Shard& backward() const { return transposed ? *transposed : forward; }
};

GraphShards make_graph_shards(const AnyCsr& graph, bool symmetric, const Partition& partition,
                              int rank, const ShardOptions& options = {});

}  // namespace plait
