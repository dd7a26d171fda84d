// Draws by the weights or the times of edges.
#pragma once

#include <cstdint>

#include "plait/base/cuda/cuda.cuh"
#include "plait/sample/cuda/sink.cuh"

namespace plait {

// Enqueues the count of the edges of each target that may be drawn: writes hop.values.eligible.
// `targets`: at most so many.
template <VertexId V>
void count_eligible(const HopArgs& hop, std::uint64_t targets, const GraphView<V>& graph,
                    std::uint64_t max_degree, cudaStream_t stream);

// As draw_scratch() and draw_edges(), for hops that draw by values but not by row_sums().
std::uint64_t value_scratch(const HopArgs& hop, std::uint64_t max_degree);
template <class S>
void draw_by_values(const S& sink, std::uint64_t targets, std::uint64_t max_degree,
                    std::uint64_t* scratch, cudaStream_t stream);

}  // namespace plait
