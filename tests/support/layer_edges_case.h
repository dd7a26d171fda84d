// A hop of a sample with all results of layer_edges(), on the CPU.
#pragma once

#include <vector>

#include "plait/sample/layer_edges.h"
#include "plait/sample/neighbours.h"
#include "tests/support/random_graph.h"

namespace plait::test {

struct LayerEdgesResults {
  std::vector<EdgeOffset> offsets;
  std::vector<Slot> sources;
  std::vector<float> weights, sums, inverse_degree, normalization;
  std::vector<std::uint64_t> numbers;

  bool operator==(const LayerEdgesResults&) const = default;

  LayerEdgesResults() = default;
  LayerEdgesResults(const HopView& hop, bool loops)
      : offsets(hop.targets + 1),
        sources(layer_edge_count(hop, loops)),
        weights(loops ? sources.size() : 0),
        sums(hop.targets),
        inverse_degree(hop.targets),
        normalization(hop.inputs),
        numbers(hop.inputs) {}
};

// A weighted graph, values of its vertices, and a sample of it.
struct LayerEdgesCase {
  Csr32 graph;
  std::vector<float> loop_weights, normalization;
  std::vector<std::uint64_t> numbers;
  Sample sample;

  LayerEdgesCase(std::uint64_t vertices, std::uint64_t edges, std::vector<std::uint64_t> seeds,
                 std::vector<std::int64_t> fanouts)
      : graph(random_csr<std::uint32_t>(vertices, edges, 3, true)) {
    for (std::uint64_t v = 0; v < vertices; ++v) {
      loop_weights.push_back(static_cast<float>(v % 5) + 0.5f);
      normalization.push_back(1 / static_cast<float>(v + 1));
      numbers.push_back(vertices - v);
    }
    const NeighbourSampler sampler(graph,
                                   {.fanouts = std::move(fanouts), .targets = HopTargets::all});
    const auto workspace = sampler.workspace();
    sample = sampler.sample(seeds, 7, *workspace);
  }
  HopView hop(std::size_t h) const {
    const Sample::Hop& of = sample.hops[h];
    return {of.targets(),         of.edges.size(), of.vertices,           of.offsets.data(),
            of.neighbours.data(), of.edges.data(), sample.vertices.data()};
  }
  // The results belong to `to`.
  LayerEdges arguments(std::size_t h, bool loops, LayerEdgesResults& to) const {
    return {.hop = hop(h),
            .graph = {.offsets = graph.offsets.data(),
                      .loops = loops,
                      .weights = graph.weights.data(),
                      .loop_weights = loop_weights.data(),
                      .normalization = normalization.data(),
                      .numbers = numbers.data()},
            .to = {.offsets = to.offsets.data(),
                   .sources = to.sources.data(),
                   .weights = loops ? to.weights.data() : nullptr,
                   .sums = to.sums.data(),
                   .inverse_degree = to.inverse_degree.data(),
                   .normalization = to.normalization.data(),
                   .numbers = to.numbers.data()}};
  }
};

// Samples with vertices without edges, hubs, all edges, and no seed.
inline std::vector<LayerEdgesCase> layer_edges_cases() {
  std::vector<LayerEdgesCase> cases;
  cases.emplace_back(300, 900, std::vector<std::uint64_t>{5, 17, 250},
                     std::vector<std::int64_t>{3, 2, 4});
  cases.emplace_back(20, 3000, std::vector<std::uint64_t>{0, 19}, std::vector<std::int64_t>{-1, 7});
  cases.emplace_back(50, 0, std::vector<std::uint64_t>{1}, std::vector<std::int64_t>{2, 2});
  cases.emplace_back(50, 70, std::vector<std::uint64_t>{}, std::vector<std::int64_t>{2});
  return cases;
}

}  // namespace plait::test
