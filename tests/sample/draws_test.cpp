// Chi-square tests of draws, over keys, vertices and trees. Keys are fixed, so results are too; a
// right sampler fails one of them with a probability of 1e-4, a biased one must.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "plait/sample/draw.h"
#include "plait/sample/neighbours.h"
#include "tests/support/chi_square.h"
#include "tests/support/sample_case.h"

namespace plait::test {
namespace {

constexpr std::uint64_t kTrials = 20000;

enum class Over { keys, vertices, trees };

// A row of edges from which `count` are drawn.
struct DrawCase {
  SampleKind kind;
  std::uint64_t degree;
  std::int64_t count;
  std::vector<float> weights = {};
  std::vector<std::int64_t> edge_times = {};  // seeds have time 0

  // Draws often. Outcomes are sorted if `sets`.
  Outcomes outcomes(Over over, bool sets, std::uint64_t trials = kTrials) const {
    const std::uint64_t rows = over == Over::vertices ? trials : 1;
    SampleGraph graph(csr_of_degrees(std::vector<std::uint64_t>(rows, degree), 1));
    for (EdgeOffset e = 0; e < graph.graph.edges(); ++e) {
      if (kind.weighted) graph.weights[e] = weights[e % degree];
      if (kind.by_edges) graph.edge_times[e] = edge_times[e % degree];
    }
    SampleSeeds seeds(1, 0, false);
    for (std::uint64_t i = 0; i < (over == Over::keys ? 1 : trials); ++i) {
      seeds.ids.push_back(i % rows);
      if (kind.timed()) seeds.times.push_back(0);
    }
    const NeighbourSampler sampler(graph.graph, kind.settings({count}), kind.values(graph));
    const auto workspace = sampler.workspace();
    Outcomes found;
    for (std::uint64_t key = 0; key < (over == Over::keys ? trials : 1); ++key) {
      const Sample sample = sampler.sample(seeds.ids, sample_key(7, key), *workspace, seeds.times);
      const Sample::Hop& hop = sample.hops[0];
      for (std::uint64_t t = 0; t < hop.targets(); ++t) {
        Outcome& outcome = found.emplace_back(hop.edges.begin() + hop.offsets[t],
                                              hop.edges.begin() + hop.offsets[t + 1]);
        for (std::uint64_t& position : outcome) position %= degree;
        if (sets) std::ranges::sort(outcome);
      }
    }
    return found;
  }
};

// Returns all sets of `count` of `items`, sorted.
Outcomes sets_of(const Outcome& items, std::size_t count) {
  Outcomes sets;
  Outcome set;
  const std::function<void(std::size_t)> extend = [&](std::size_t from) {
    if (set.size() == count) {
      sets.push_back(set);
      return;
    }
    for (std::size_t i = from; i < items.size(); ++i) {
      set.push_back(items[i]);
      extend(i + 1);
      set.pop_back();
    }
  };
  extend(0);
  return sets;
}

Outcome up_to(std::uint64_t size) {
  Outcome items(size);
  for (std::uint64_t i = 0; i < size; ++i) items[i] = i;
  return items;
}

// The chances of a pair that is drawn with replacement.
Chances pairs_with_replacement(const std::vector<float>& weights) {
  double sum = 0;
  for (const float weight : weights) sum += double{weight};
  Chances chances;
  for (std::uint64_t a = 0; a < weights.size(); ++a)
    for (std::uint64_t b = 0; b < weights.size(); ++b)
      if (weights[a] * weights[b] > 0)
        chances[{a, b}] = double{weights[a]} * double{weights[b]} / (sum * sum);
  return chances;
}

// The chances of a set of two: one is drawn by weight, then one of the others.
Chances sets_by_weight(const std::vector<float>& weights) {
  double sum = 0;
  for (const float weight : weights) sum += double{weight};
  Chances chances;
  for (std::uint64_t a = 0; a < weights.size(); ++a)
    for (std::uint64_t b = a + 1; b < weights.size(); ++b) {
      const double first = double{weights[a]} / sum, second = double{weights[b]} / sum;
      if (first * second > 0)
        chances[{a, b}] = first * second / (1 - first) + first * second / (1 - second);
    }
  return chances;
}

// Trees are told apart in disjoint samples alone.
void expect_likely(DrawCase c, bool sets, const Chances& chances) {
  for (const Over over : {Over::keys, Over::vertices, Over::trees}) {
    if (over == Over::trees) c.kind.disjoint = true;
    EXPECT_GT(likelihood(c.outcomes(over, sets), chances), kLeast)
        << c.kind.name() << ", " << c.count << " of " << c.degree << ", over "
        << static_cast<int>(over);
  }
}

const std::vector<float> kWeights = {1, 0, 3, 0.5, 2, 8};

TEST(Draws, WithoutReplacementSetsAreEquallyLikely) {
  for (const auto& [degree, count] : {std::pair{6, 3}, {7, 2}, {5, 4}, {9, 1}, {8, 5}})
    expect_likely({{}, static_cast<std::uint64_t>(degree), count}, true,
                  equal_chances(sets_of(up_to(static_cast<std::uint64_t>(degree)),
                                        static_cast<std::size_t>(count))));
}

// Of more edges than sets can be counted of: each edge alone, and the number of edges of one half.
TEST(Draws, WithoutReplacementOfManyEdges) {
  for (const auto& [n, k] : {std::pair{40.0, 30.0}, {200.0, 70.0}, {65.0, 64.0}}) {
    const auto degree = static_cast<std::uint64_t>(n);
    const Outcomes outcomes =
        DrawCase{{}, degree, static_cast<std::int64_t>(k)}.outcomes(Over::keys, true);
    std::vector<double> counts(degree);
    Outcomes halves;
    for (const Outcome& outcome : outcomes) {
      for (const std::uint64_t position : outcome) ++counts[position];
      const auto half = std::ranges::count_if(outcome, [&](auto p) { return p < degree / 2; });
      halves.push_back({static_cast<std::uint64_t>(half)});
    }
    // Counts of edges depend on each other: their covariance is p (1 - p) n / (n - 1) (I - J / n).
    const double p = k / n, trials = static_cast<double>(kTrials);
    double x = 0;
    for (const double count : counts) x += (count - trials * p) * (count - trials * p);
    EXPECT_GT(tail(x / (trials * p * (1 - p) * n / (n - 1)), n - 1), kLeast) << n;
    // Hypergeometric; rare numbers are counted together.
    const auto log_choose = [](double a, double b) {
      return std::lgamma(a + 1) - std::lgamma(b + 1) - std::lgamma(a - b + 1);
    };
    const double half = std::floor(n / 2);
    Chances chances;
    std::map<std::uint64_t, bool> rare;
    for (double in = std::max(0.0, k - (n - half)); in <= std::min(k, half); ++in) {
      const double chance =
          std::exp(log_choose(half, in) + log_choose(n - half, k - in) - log_choose(n, k));
      const auto number = static_cast<std::uint64_t>(in);
      rare[number] = chance * trials < 10;
      chances[{rare[number] ? 1000 : number}] += chance;
    }
    for (Outcome& outcome : halves)
      if (rare[outcome[0]]) outcome[0] = 1000;
    EXPECT_GT(likelihood(halves, chances), kLeast) << n;
  }
}

// Numbers have 64 bits here. Positions are counted by 1/16 of the row.
TEST(Draws, OfRowsWithMoreThan65536Edges) {
  for (const bool replace : {false, true}) {
    const DrawCase c{{.replace = replace}, 160000, 64};
    Outcomes parts;
    for (const Outcome& outcome : c.outcomes(Over::keys, false, 500))
      for (const std::uint64_t position : outcome) parts.push_back({position / 10000});
    Outcomes all;
    for (std::uint64_t part = 0; part < 16; ++part) all.push_back({part});
    EXPECT_GT(likelihood(parts, equal_chances(all)), kLeast);
  }
}

TEST(Draws, WithReplacement) {
  const std::vector<float> equal(7, 1);
  expect_likely({{.replace = true}, 7, 2}, false, pairs_with_replacement(equal));
  expect_likely({{.replace = true, .weighted = true}, 6, 2, kWeights}, false,
                pairs_with_replacement(kWeights));
}

TEST(Draws, ByWeightWithoutReplacement) {
  expect_likely({{.weighted = true}, 6, 2, kWeights}, true, sets_by_weight(kWeights));
}

// Seeds have time 0: the edges of weight or time out of range take no part.
TEST(Draws, OfEdgesThatAreNotTooLate) {
  const std::vector<std::int64_t> times = {0, 1, -5, -3, 2, 0, -1, 7};
  const Outcome eligible = {0, 2, 3, 5, 6};
  const SampleKind timed{.disjoint = true, .by_edges = true};
  expect_likely({timed, 8, 2, {}, times}, true, equal_chances(sets_of(eligible, 2)));
  std::vector<float> weights(8, 0);
  for (const std::uint64_t p : eligible) weights[p] = static_cast<float>(p + 1);
  SampleKind weighted = timed;
  weighted.weighted = true;
  const std::vector<float> given = {1, 9, 3, 4, 9, 6, 7, 9};
  expect_likely({weighted, 8, 2, given, times}, true, sets_by_weight(weights));
  weighted.replace = true;
  expect_likely({weighted, 8, 2, given, times}, false, pairs_with_replacement(weights));
  SampleKind again = timed;
  again.replace = true;
  for (float& weight : weights) weight = weight > 0 ? 1 : 0;
  expect_likely({again, 8, 2, {}, times}, false, pairs_with_replacement(weights));
}

// Samplers leave out edges whose rank cannot be among the least.
TEST(Draws, BoundIsBelowRanks) {
  for (double u : {0x1p-53, 1e-9, 0.1, 0.5, 0.70710678, 0.7072, 0.9, 1 - 0x1p-30, 1 - 0x1p-53}) {
    EXPECT_GT(weighted_rank(u, 1), weighted_rank_bound(u)) << u;
    EXPECT_DOUBLE_EQ(weighted_rank(u, 4), weighted_rank(u, 1) / 4);
  }
}

// The tests see draws that are wrong by little.
TEST(Draws, BiasIsSeen) {
  Outcomes next_one, by_one_weight;
  for (std::uint64_t key = 0; key < kTrials; ++key) {
    const VertexDraws draws({.key = sample_key(7, key)});
    // A number that was drawn before is replaced by the next one instead of the last.
    Outcome outcome;
    for (std::uint64_t i = 0; i < 3; ++i) {
      std::uint64_t chosen = draws.below(6, i, 6);
      while (std::ranges::count(outcome, chosen) > 0) chosen = (chosen + 1) % 6;
      outcome.push_back(chosen);
    }
    std::ranges::sort(outcome);
    next_one.push_back(outcome);
    // Ranks are divided by weights of which one is a tenth too great.
    std::vector<std::pair<double, std::uint64_t>> ranked;
    for (std::uint64_t p = 0; p < kWeights.size(); ++p)
      if (kWeights[p] > 0)
        ranked.emplace_back(weighted_rank(draws.inner_share(p), kWeights[p] * (p == 2 ? 1.1f : 1)),
                            p);
    std::ranges::sort(ranked);
    by_one_weight.push_back({std::min(ranked[0].second, ranked[1].second),
                             std::max(ranked[0].second, ranked[1].second)});
  }
  EXPECT_LT(likelihood(next_one, equal_chances(sets_of(up_to(6), 3))), kLeast);
  EXPECT_LT(likelihood(by_one_weight, sets_by_weight(kWeights)), kLeast);
}

}  // namespace
}  // namespace plait::test
