// Draws the edges of a hop, and enters the vertices that they reach into the places.
#pragma once

#include <cstdint>

#include "plait/base/cuda/cuda.cuh"
#include "plait/sample/cuda/hop.cuh"
#include "plait/sample/cuda/places.cuh"

namespace plait {

// The bounds that the host knows for a hop when it enqueues it: at most so many targets and edges.
struct HopBounds {
  std::uint64_t targets, edges;
};

// The words of scratch memory that draw_edges() needs for this hop.
std::uint64_t draw_scratch(const HopArgs& hop, std::uint64_t max_degree);

// Enqueues the drawing of the hop's edges. Needs hop.offsets; writes hop.edges, and to `slots`, by
// edge, the slot of the vertex that it reaches, whose place becomes `vertices` + the first such
// edge unless it was found before. Instances are in draw.cu.
template <VertexId V, class Places>
void draw_edges(const HopArgs& hop, const HopBounds& bounds, const GraphView<V>& graph,
                std::uint64_t max_degree, const Places& places, typename Places::Slot* slots,
                std::uint64_t* scratch, cudaStream_t stream);

}  // namespace plait
