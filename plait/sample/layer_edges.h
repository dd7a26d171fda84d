// The edges of one hop of a sample as a layer of a model reads them, one function per target, per
// edge and per input for the CPU and the GPU.
//
// A hop lacks some edges of its targets. So that sums over a sample estimate sums over all edges,
// each target has a factor: its edges in the graph, or those that could be drawn, over its edges in
// the sample. Where every vertex has one loop (GCN and GAT), the graph is sampled without loops,
// each target gets its own as its first edge, and factors are part of the weights, because they do
// not concern the loop.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"

namespace plait {

// A hop whose targets are the first vertices of the sample (HopTargets::all). The arrays are
// Sample's.
struct HopView {
  std::uint64_t targets = 0, edges = 0, inputs = 0;  // inputs: vertices found, this hop included
  const std::uint32_t* offsets = nullptr;            // targets + 1
  const std::uint32_t* neighbours = nullptr;         // edges
  const EdgeOffset* places = nullptr;                // edges
  const std::uint64_t* vertices = nullptr;           // inputs
};

// The arrays of the sampled graph that layers read. Pointers may be null as said.
struct LayerGraph {
  const EdgeOffset* offsets = nullptr;     // of the CSR
  bool loops = false;                      // each target gets a loop
  const float* weights = nullptr;          // with loops: by place; null: all 1
  const float* loop_weights = nullptr;     // by vertex; null: all 1
  const float* normalization = nullptr;    // by vertex; null: not wanted
  const std::uint64_t* numbers = nullptr;  // by vertex (Dataset::numbers); null: the vertex itself
};

// The results. Null: not wanted.
struct LayerArrays {
  EdgeOffset* offsets = nullptr;     // targets + 1
  Slot* sources = nullptr;           // layer_edge_count()
  float* weights = nullptr;          // as many; only with loops
  float* sums = nullptr;             // by target: the factor, 1 without edges
  float* inverse_degree = nullptr;   // by target: 1 / its edges here, 0 without edges
  float* normalization = nullptr;    // by input
  std::uint64_t* numbers = nullptr;  // by input
};

// The edges that the hop's edges were drawn from if weights or times exclude some (EligibleArrays).
struct EligibleView {
  const std::uint64_t* counts = nullptr;  // by target; null: all edges of the row
  const float* mean_weights = nullptr;    // by target; null or 0: edges keep their own weights
};

struct LayerEdges {
  HopView hop;
  LayerGraph graph;
  EligibleView eligible;
  LayerArrays to;
};

// Returns the number of edges that the layer reads.
constexpr std::uint64_t layer_edge_count(const HopView& hop, bool loops) {
  return hop.edges + (loops ? hop.targets : 0);
}

// Writes all results, in one thread.
void layer_edges(const LayerEdges& a);

namespace layer_edge {

PLAIT_HOST_DEVICE inline std::uint32_t drawn(const HopView& hop, std::uint64_t t) {
  return hop.offsets[t + 1] - hop.offsets[t];
}
PLAIT_HOST_DEVICE inline float factor(const LayerEdges& a, std::uint64_t t) {
  const std::uint64_t v = a.hop.vertices[t];
  const std::uint32_t here = drawn(a.hop, t);
  if (here == 0) return 1;
  const std::uint64_t there = a.eligible.counts != nullptr
                                  ? a.eligible.counts[t]
                                  : a.graph.offsets[v + 1] - a.graph.offsets[v];
  return static_cast<float>(static_cast<double>(there) / static_cast<double>(here));
}

// Edges that were drawn in proportion to their weights count alike.
PLAIT_HOST_DEVICE inline float weight(const LayerEdges& a, std::uint64_t t, std::uint64_t e) {
  const float mean = a.eligible.mean_weights != nullptr ? a.eligible.mean_weights[t] : 0;
  if (mean > 0) return mean;
  return a.graph.weights != nullptr ? a.graph.weights[a.hop.places[e]] : 1;
}

// Writes the results of target t, its loop among them.
PLAIT_HOST_DEVICE inline void write_target(const LayerEdges& a, std::uint64_t t) {
  const LayerArrays& to = a.to;
  const std::uint64_t loops = a.graph.loops ? 1 : 0;
  const std::uint64_t first = a.hop.offsets[t] + loops * t;
  const std::uint64_t edges = drawn(a.hop, t) + loops;
  if (to.offsets != nullptr) {
    to.offsets[t] = first;
    if (t + 1 == a.hop.targets) to.offsets[t + 1] = first + edges;
  }
  if (loops > 0 && to.sources != nullptr) to.sources[first] = static_cast<Slot>(t);
  if (loops > 0 && to.weights != nullptr)
    to.weights[first] =
        a.graph.loop_weights != nullptr ? a.graph.loop_weights[a.hop.vertices[t]] : 1;
  if (to.sums != nullptr) to.sums[t] = factor(a, t);
  if (to.inverse_degree != nullptr)
    to.inverse_degree[t] = edges > 0 ? 1 / static_cast<float>(edges) : 0;
}

// Writes the results of edge e, which is target t's.
PLAIT_HOST_DEVICE inline void write_edge(const LayerEdges& a, std::uint64_t t, std::uint64_t e) {
  const std::uint64_t at = e + (a.graph.loops ? t + 1 : 0);
  if (a.to.sources != nullptr) a.to.sources[at] = a.hop.neighbours[e];
  if (a.to.weights != nullptr) a.to.weights[at] = factor(a, t) * weight(a, t, e);
}

PLAIT_HOST_DEVICE inline void write_input(const LayerEdges& a, std::uint64_t i) {
  const std::uint64_t v = a.hop.vertices[i];
  if (a.to.normalization != nullptr) a.to.normalization[i] = a.graph.normalization[v];
  if (a.to.numbers != nullptr)
    a.to.numbers[i] = a.graph.numbers != nullptr ? a.graph.numbers[v] : v;
}

}  // namespace layer_edge
}  // namespace plait
