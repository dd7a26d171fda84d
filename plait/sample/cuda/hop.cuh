// The arguments of the kernels that make one hop of a sample, and the number of edges of a target.
#pragma once

#include <cstdint>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/ids.h"

namespace plait {

// The counts of a hop, in memory of the GPU: the host knows only their bounds when it enqueues a
// hop. Each hop writes its own `edges` and the rest for the next hop.
struct HopCounts {
  std::uint32_t first_target, targets;
  std::uint32_t vertices;  // found before this hop
  std::uint32_t edges;
};

template <VertexId V>
struct GraphView {
  const EdgeOffset* offsets;
  const V* neighbours;
};

// The graph's values (GpuSampleValues), and the times of the seeds.
struct HopValues {
  const float* weights;
  const std::int64_t *edge_times, *vertex_times;
  const double* sums;       // row_sums(), or null
  const std::int64_t* now;  // by tree
  bool last;                // the latest edges are taken
  std::uint64_t* eligible;  // by target: its edges that may be drawn, at most HopArgs::enough()

  __host__ __device__ bool timed() const {
    return edge_times != nullptr || vertex_times != nullptr;
  }
  __host__ __device__ bool any() const { return weights != nullptr || timed(); }
};

// All pointers are to memory of the GPU.
struct HopArgs {
  static constexpr std::uint64_t kEverything = ~std::uint64_t{0};

  std::uint64_t key;         // of the batch
  std::uint32_t first_tree;  // keys the draws of tree 0; the next numbers key the other trees
  std::uint64_t fanout;      // kEverything: all edges
  bool replace;
  std::uint8_t hop;
  const HopCounts* counts;        // of this hop
  const std::uint64_t* vertices;  // ids of all that were found before
  const std::uint32_t* trees;     // of the same; null: not disjoint
  std::uint32_t* offsets;         // targets + 1
  EdgeOffset* edges;              // by edge: its place in the CSR
  HopValues values;

  __host__ __device__ bool draws_again() const { return replace && fanout != kEverything; }
  // Returns the number of edges beyond which more of them make no difference to count_of().
  __device__ std::uint64_t enough() const { return draws_again() ? 1 : fanout; }
  __device__ std::uint32_t tree_of(std::uint32_t number) const {
    return trees != nullptr ? trees[number] : 0;
  }
  // Returns the number of edges that a vertex gets if so many of its edges may be drawn.
  __device__ std::uint64_t count_of(std::uint64_t edges_there) const {
    if (draws_again()) return edges_there > 0 ? fanout : 0;
    return edges_there < fanout ? edges_there : fanout;
  }
};

// Returns the number of edges of target i; 0 behind the last target, so that a scan of more targets
// than there are ends with the total.
template <class Count>
struct EdgeCounts {
  HopArgs hop;
  const EdgeOffset* graph_offsets;

  __device__ Count operator()(std::uint32_t i) const {
    if (i >= hop.counts->targets) return 0;
    if (hop.values.any()) return static_cast<Count>(hop.count_of(hop.values.eligible[i]));
    const std::uint64_t v = hop.vertices[hop.counts->first_target + i];
    return static_cast<Count>(hop.count_of(graph_offsets[v + 1] - graph_offsets[v]));
  }
};

}  // namespace plait
