// The edges from which hops were drawn, counted one by one from their definition.
#include "plait/sample/eligible_edges.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/eligible_case.h"

namespace plait::test {
namespace {

// Returns the weights of the edges of vertex v that a seed of this time may draw.
std::vector<double> eligible_weights(const SampleGraph& g, const SampleKind& kind, std::uint64_t v,
                                     std::int64_t now) {
  std::vector<double> weights;
  for (EdgeOffset e = g.graph.offsets[v]; e < g.graph.offsets[v + 1]; ++e) {
    if (kind.weighted && g.weights[e] == 0) continue;
    if (kind.by_edges && g.edge_times[e] > now) continue;
    if (kind.by_vertices && g.vertex_times[g.graph.neighbours[e]] > now) continue;
    weights.push_back(kind.weighted ? double{g.weights[e]} : 1);
  }
  return weights;
}

TEST(EligibleEdges, AreThoseThatCouldBeDrawn) {
  int partly = 0, means = 0;
  for_draws_by_values([&](const SampleGraph& g, const SampleKind& kind, auto fanouts) {
    SCOPED_TRACE(kind.name());
    const SampleSeeds seeds(g.graph.vertices(), 9, kind.timed());
    const SampleValues values = kind.values(g);
    const Sample sample = sample_once(g.graph, kind.settings(fanouts), values, seeds, 4);
    for (std::size_t h = 0; h < sample.hops.size(); ++h) {
      const Sample::Hop& hop = sample.hops[h];
      const bool again = kind.replace && fanouts[h] != -1;
      EligibleNumbers found(hop.targets());
      eligible_edges(g.graph, values, {sample, hop, seeds.times, again}, found.arrays());
      for (std::uint64_t t = 0; t < hop.targets(); ++t) {
        const std::uint64_t number = hop.first_target + t;
        const std::int64_t now = kind.timed() ? seeds.times[sample.trees[number]] : 0;
        const auto weights = eligible_weights(g, kind, sample.vertices[number], now);
        const std::uint64_t drawn = hop.offsets[t + 1] - hop.offsets[t];
        ASSERT_EQ(found.counts[t], weights.size());
        const auto fanout = static_cast<std::uint64_t>(fanouts[h]);
        ASSERT_EQ(drawn, again && !weights.empty()
                             ? fanout
                             : std::min<std::uint64_t>(weights.size(), fanout));
        double mean = 0;
        for (const double weight : weights) mean += weight / static_cast<double>(weights.size());
        if (!kind.weighted || weights.empty() || (!again && drawn == weights.size())) mean = 0;
        ASSERT_NEAR(found.means[t], mean, 1e-6 * mean);
        partly += weights.size() < g.graph.degree(sample.vertices[number]);
        means += mean > 0;
      }
    }
  });
  EXPECT_GT(partly, 1000);
  EXPECT_GT(means, 1000);
}

TEST(EligibleEdges, LetSumsOfWeightedEdgesBeEstimatedWithoutBias) {
  const SampleGraph g(csr_of_degrees({30, 0, 0, 0, 0, 0, 0, 0, 0}, 3));
  const SampleValues values{.weights = g.weights};
  const NeighbourSampler sampler(g.graph, {.fanouts = {4}, .replace = true}, values);
  const auto workspace = sampler.workspace();
  const auto value = [&](EdgeOffset e) { return static_cast<double>(g.graph.neighbours[e] + 1); };
  double wanted = 0;
  for (EdgeOffset e = 0; e < 30; ++e) wanted += double{g.weights[e]} * value(e);
  const std::vector<std::uint64_t> seeds{0};
  constexpr int kBatches = 20'000;
  double sum = 0;
  for (std::uint64_t key = 0; key < kBatches; ++key) {
    const Sample sample = sampler.sample(seeds, key, *workspace);
    EligibleNumbers found(1);
    eligible_edges(g.graph, values, {sample, sample.hops[0], {}, true}, found.arrays());
    const double factor = static_cast<double>(found.counts[0]) / 4;
    for (const EdgeOffset e : sample.hops[0].edges)
      sum += factor * double{found.means[0]} * value(e) / kBatches;
  }
  EXPECT_NEAR(sum, wanted, 0.02 * wanted);
}

TEST(EligibleEdges, OfTheWholeRowWithoutWeightsNeedNoMeans) {
  const SampleGraph g(csr_of_degrees({3, 0, 2}, 1));
  const SampleKind kind{.disjoint = true, .by_edges = true};
  SampleSeeds seeds(3, 3, true);
  seeds.times = {100, 100, 100};
  const Sample sample = sample_once(g.graph, kind.settings({1}), kind.values(g), seeds, 1);
  std::vector<std::uint64_t> counts(3);
  eligible_edges(g.graph, kind.values(g), {sample, sample.hops[0], seeds.times}, {counts.data()});
  for (std::size_t t = 0; t < 3; ++t) EXPECT_EQ(counts[t], g.graph.degree(seeds.ids[t]));
}

}  // namespace
}  // namespace plait::test
