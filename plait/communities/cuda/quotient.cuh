// Quotient graphs (communities/quotient.h) on the GPU.
//
// All work and memory is of one stream, which no function here waits for unless it returns a number
// to the host. All throw DoesNotFitError.
#pragma once

#include <cstdint>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/ids.h"
#include "plait/communities/moves.h"

namespace plait {

// A graph in the GPU's memory.
struct DeviceGraph {
  DeviceArray<EdgeOffset> offsets;  // vertices + 1
  DeviceArray<Slot> neighbours;
  std::uint64_t vertices = 0;
  bool symmetric = false;

  EdgeOffset edges() const { return neighbours.size(); }
};

// A Quotient in the GPU's memory. Neighbours ascend in each row.
struct DeviceQuotient {
  DeviceArray<EdgeOffset> offsets;  // communities + 1
  DeviceArray<std::uint32_t> neighbours;
  DeviceArray<std::uint64_t> weights;
  DeviceArray<std::uint64_t> degrees, outer;  // edge ends, and ends of edges to other communities
  std::uint64_t total = 0;                    // edge ends in all
  std::uint32_t communities = 0;

  EdgeOffset entries() const { return neighbours.size(); }
  // As Quotient::rows().
  WeightedRows rows() const {
    return {.begin = offsets.data(),
            .end = offsets.data() + 1,
            .neighbours = neighbours.data(),
            .weights = weights.data(),
            .degrees = degrees.data(),
            .rows = communities,
            .count = communities,
            .entries = entries(),
            .total = total};
  }
};

// As make_dense() of quotient.h, of labels below `bound`.
std::uint32_t make_dense(DeviceArray<std::uint32_t>& labels, std::uint64_t bound,
                         cudaStream_t stream);

// As quotient_of() of quotient.h. `read`, one byte per vertex, receives a 1 for each vertex that a
// row lists, if the graph is not symmetric.
DeviceQuotient quotient_of(const DeviceGraph& graph, const DeviceArray<std::uint32_t>& labels,
                           std::uint32_t communities, DeviceArray<std::uint8_t>& read,
                           cudaStream_t stream);
DeviceQuotient quotient_of(const WeightedRows& graph, const DeviceArray<std::uint32_t>& labels,
                           std::uint32_t communities, cudaStream_t stream);

// As put_joined_first() of quotient.h.
void put_joined_first(DeviceArray<std::uint32_t>& labels, DeviceQuotient& graph,
                      cudaStream_t stream);

// Copies a quotient to the host, and all but `outer` to the GPU. Both wait.
Quotient to_host(const DeviceQuotient& graph);
DeviceQuotient to_gpu(const Quotient& graph);
// Returns the modularity of the communities. Waits.
double modularity_of(const DeviceQuotient& graph, cudaStream_t stream, double resolution = 1);

// As local_moves() of moves.h, at once.
DeviceArray<std::uint32_t> local_moves(const WeightedRows& graph, const MoveRules& rules,
                                       cudaStream_t stream);
// As merge() of moves.h, of a quotient that is large.
DeviceArray<std::uint32_t> merge(const DeviceQuotient& graph, double resolution,
                                 cudaStream_t stream);

}  // namespace plait
