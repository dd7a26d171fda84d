// The targets of a hop, and where the edges that they draw go.
#pragma once

#include "plait/sample/cuda/hop.cuh"
#include "plait/sample/cuda/places.cuh"
#include "plait/sample/draw.h"

namespace plait {

// Writes the edges of a hop.
template <VertexId V, class Places>
struct Sink {
  HopArgs hop;
  GraphView<V> graph;
  Places places;
  typename Places::Slot* slots;

  // Writes edge e of the hop, which is the edge at `place` in the CSR.
  __device__ void put(std::uint64_t e, EdgeOffset place, std::uint32_t tree,
                      std::uint32_t vertices) const {
    const auto slot = places.claim(tree, graph.neighbours[place]);
    hop.edges[e] = place;
    slots[e] = slot;
    lower_place(places, slot, vertices + static_cast<std::uint32_t>(e));
  }
};

// A target and its row in the CSR.
struct Target {
  std::uint64_t vertex = 0;
  std::uint32_t tree = 0;
  EdgeOffset row = 0, degree = 0;
  std::uint64_t count = 0;  // edges that it gets
};

template <class S>
__device__ Target target_of(const S& sink, const HopCounts& counts, std::uint64_t i) {
  const auto number = static_cast<std::uint32_t>(counts.first_target + i);
  Target t;
  t.vertex = sink.hop.vertices[number];
  t.tree = sink.hop.tree_of(number);
  t.row = sink.graph.offsets[t.vertex];
  t.degree = sink.graph.offsets[t.vertex + 1] - t.row;
  t.count = sink.hop.count_of(sink.hop.values.any() ? sink.hop.values.eligible[i] : t.degree);
  return t;
}

__device__ inline VertexDraws draws_of(const HopArgs& hop, const Target& t) {
  return VertexDraws(
      {.key = hop.key, .vertex = t.vertex, .tree = hop.first_tree + t.tree, .hop = hop.hop});
}

}  // namespace plait
