// The edges of hops as layers read them, on the GPU: the same bits as on the CPU.
#include "plait/sample/cuda/layer_edges.h"

#include <gtest/gtest.h>

#include "plait/base/cuda/cuda.cuh"
#include "tests/support/layer_edges_case.h"

namespace plait::test {
namespace {

template <class T>
DeviceArray<T> there(const T* values, std::uint64_t count) {
  return DeviceArray<T>(std::span<const T>(values, count));
}

LayerEdgesResults on_gpu(const LayerEdges& a) {
  const HopView& hop = a.hop;
  LayerEdgesResults results(hop, a.graph.loops);
  const auto offsets = there(hop.offsets, hop.targets + 1);
  const auto neighbours = there(hop.neighbours, hop.edges);
  const auto places = there(hop.places, hop.edges);
  const auto vertices = there(hop.vertices, hop.inputs);
  const auto put = [](auto& values) {
    using T = std::remove_cvref_t<decltype(values[0])>;
    return DeviceArray<T>(std::span<const T>(values));
  };
  auto to_offsets = put(results.offsets);
  auto sources = put(results.sources);
  auto weights = put(results.weights), sums = put(results.sums);
  auto inverse = put(results.inverse_degree), normalization = put(results.normalization);
  auto numbers = put(results.numbers);
  LayerEdges b = a;
  b.hop.offsets = offsets.data(), b.hop.neighbours = neighbours.data();
  b.hop.places = places.data(), b.hop.vertices = vertices.data();
  b.to = {to_offsets.data(), sources.data(), a.graph.loops ? weights.data() : nullptr,
          sums.data(),       inverse.data(), normalization.data(),
          numbers.data()};
  gpu_layer_edges(b, nullptr);
  results.offsets = to_offsets.to_host(), results.sources = sources.to_host();
  results.weights = weights.to_host(), results.sums = sums.to_host();
  results.inverse_degree = inverse.to_host(), results.normalization = normalization.to_host();
  results.numbers = numbers.to_host();
  return results;
}

TEST(LayerEdgesCuda, AreThoseOfTheCpu) {
  for (const LayerEdgesCase& c : layer_edges_cases()) {
    const auto graph_offsets = there(c.graph.offsets.data(), c.graph.offsets.size());
    const auto edge_weights = there(c.graph.weights.data(), c.graph.weights.size());
    const auto loops = there(c.loop_weights.data(), c.loop_weights.size());
    const auto normalization = there(c.normalization.data(), c.normalization.size());
    const auto numbers = there(c.numbers.data(), c.numbers.size());
    for (std::size_t h = 0; h < c.sample.hops.size(); ++h)
      for (const bool with_loops : {false, true}) {
        LayerEdgesResults wanted(c.hop(h), with_loops);
        LayerEdges a = c.arguments(h, with_loops, wanted);
        layer_edges(a);
        a.graph = {graph_offsets.data(), with_loops,           edge_weights.data(),
                   loops.data(),         normalization.data(), numbers.data()};
        EXPECT_EQ(on_gpu(a), wanted) << "hop " << h << (with_loops ? " with loops" : "");
      }
  }
}

}  // namespace
}  // namespace plait::test
