// The edges of hops as layers read them, from their definition.
#include "plait/sample/layer_edges.h"

#include <gtest/gtest.h>

#include "tests/support/layer_edges_case.h"

namespace plait::test {
namespace {

// Walks through a hop's targets and their edges, and compares all results on the way.
void check(const LayerEdgesCase& c, std::size_t h, bool loops) {
  SCOPED_TRACE(testing::Message() << "hop " << h << (loops ? " with loops" : ""));
  const HopView hop = c.hop(h);
  LayerEdgesResults found(hop, loops);
  layer_edges(c.arguments(h, loops, found));
  std::size_t at = 0;
  for (std::uint64_t t = 0; t < hop.targets; ++t) {
    const std::uint64_t v = hop.vertices[t], first = hop.offsets[t], last = hop.offsets[t + 1];
    const auto drawn = static_cast<float>(last - first);
    const float factor = last == first ? 1 : static_cast<float>(c.graph.degree(v)) / drawn;
    EXPECT_EQ(found.offsets[t], at);
    EXPECT_EQ(found.sums[t], factor);
    const float edges = drawn + (loops ? 1 : 0);
    EXPECT_EQ(found.inverse_degree[t], edges > 0 ? 1 / edges : 0);
    if (loops) {
      EXPECT_EQ(found.sources[at], t);
      EXPECT_EQ(found.weights[at], c.loop_weights[v]);
      ++at;
    }
    for (std::uint64_t e = first; e < last; ++e, ++at) {
      EXPECT_EQ(found.sources[at], hop.neighbours[e]);
      EXPECT_EQ(c.graph.neighbours[hop.places[e]], hop.vertices[found.sources[at]]);
      if (loops) EXPECT_EQ(found.weights[at], factor * c.graph.weight(hop.places[e]));
    }
  }
  EXPECT_EQ(found.offsets.back(), at);
  EXPECT_EQ(found.sources.size(), at);
  for (std::uint64_t i = 0; i < hop.inputs; ++i) {
    EXPECT_EQ(found.normalization[i], c.normalization[hop.vertices[i]]);
    EXPECT_EQ(found.numbers[i], c.numbers[hop.vertices[i]]);
  }
}

TEST(LayerEdges, AreThoseOfTheSampleWithLoopsAndFactors) {
  for (const LayerEdgesCase& c : layer_edges_cases())
    for (std::size_t h = 0; h < c.sample.hops.size(); ++h)
      for (const bool loops : {false, true}) check(c, h, loops);
}

TEST(LayerEdges, WithoutValuesEverythingWeighsOne) {
  const LayerEdgesCase c(40, 300, {1, 2, 3}, {4});
  LayerEdgesResults found(c.hop(0), true);
  LayerEdges a = c.arguments(0, true, found);
  a.graph.weights = a.graph.loop_weights = nullptr, a.graph.numbers = nullptr;
  layer_edges(a);
  for (std::uint64_t t = 0; t < a.hop.targets; ++t)
    for (std::uint64_t e = found.offsets[t]; e < found.offsets[t + 1]; ++e)
      EXPECT_EQ(found.weights[e], e == found.offsets[t] ? 1 : found.sums[t]);
  for (std::uint64_t i = 0; i < a.hop.inputs; ++i) EXPECT_EQ(found.numbers[i], a.hop.vertices[i]);
}

TEST(LayerEdges, FactorsAreOfTheEligibleEdges) {
  const LayerEdgesCase c(40, 300, {1, 2, 3}, {2, 2});
  const HopView hop = c.hop(1);
  std::vector<std::uint64_t> counts(hop.targets);
  std::vector<float> means(hop.targets);
  for (std::uint64_t t = 0; t < hop.targets; ++t)
    counts[t] = t + 1, means[t] = static_cast<float>(t % 3);  // 0: edges keep their own weights
  LayerEdgesResults found(hop, true);
  LayerEdges a = c.arguments(1, true, found);
  a.eligible = {counts.data(), means.data()};
  layer_edges(a);
  for (std::uint64_t t = 0; t < hop.targets; ++t) {
    const std::uint64_t first = hop.offsets[t], last = hop.offsets[t + 1];
    const float factor =
        first == last ? 1 : static_cast<float>(t + 1) / static_cast<float>(last - first);
    EXPECT_EQ(found.sums[t], factor);
    for (std::uint64_t e = first; e < last; ++e)
      EXPECT_EQ(found.weights[e + t + 1],
                factor * (t % 3 == 0 ? c.graph.weight(hop.places[e]) : means[t]));
  }
}

}  // namespace
}  // namespace plait::test
