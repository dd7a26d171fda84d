// Random walks: each step follows the rule, and the chances of all steps are right.
#include "plait/sample/walks.h"

#include <gtest/gtest.h>

#include <limits>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "tests/support/chi_square.h"
#include "tests/support/error_of.h"
#include "tests/support/sample_case.h"

namespace plait::test {
namespace {

constexpr std::uint64_t kTrials = 20000;

// Vertices 0 .. 5 with parallel edges and a loop; 4 is an end, and no edge leads to 5.
const Csr64 kGraph{std::vector<EdgeOffset>{0, 4, 7, 10, 12, 12, 15},
                   std::vector<std::uint64_t>{1, 2, 2, 3, 0, 2, 3, 0, 1, 2, 0, 1, 1, 3, 4},
                   {}};
const std::vector<float> kWeights = {1, 2, 0.5, 3, 1, 0, 2, 4, 1, 0.25, 1, 3, 2, 1, 1};

struct WalkCase {
  WalkSettings settings;
  bool weighted = false;

  RandomWalks walks() const {
    return RandomWalks(kGraph,
                       weighted ? std::span<const float>(kWeights) : std::span<const float>());
  }
  double weight(EdgeOffset e) const { return weighted ? double{kWeights[e]} : 1; }

  // The chances of the vertex after `at`, which was reached from `before` (kNone: the start).
  static constexpr std::uint64_t kNone = 99;
  std::map<std::uint64_t, double> next(std::uint64_t start, std::uint64_t before,
                                       std::uint64_t at) const {
    std::map<std::uint64_t, double> to;
    double sum = 0;
    for (EdgeOffset e = kGraph.offsets[at]; e < kGraph.offsets[at + 1]; ++e) {
      const std::uint64_t v = kGraph.neighbours[e];
      double chance = weight(e);
      if (before != kNone) {
        const auto row = kGraph.row(v);
        const bool near = std::ranges::find(row, before) != row.end();
        if (v == before)
          chance /= settings.p;
        else if (!near)
          chance /= settings.q;
      }
      if (chance > 0) to[v] += chance;
      sum += chance;
    }
    for (auto& [v, chance] : to) chance *= (1 - settings.restart) / sum;
    if (to.empty()) to[at] = 1 - settings.restart;
    if (settings.restart > 0) to[start] += settings.restart;
    return to;
  }

  // The chances of a walk of two steps, if no restart hides where it comes from.
  Chances chances(std::uint64_t start) const {
    Chances chances;
    for (const auto& [first, chance] : next(start, kNone, start))
      for (const auto& [second, more] : next(start, start, first))
        chances[{start, first, second}] += chance * more;
    return chances;
  }

  // Walks often from a vertex: in one call, or in calls with keys of their own.
  Outcomes outcomes(std::uint64_t start, bool by_keys) const {
    const RandomWalks graph = walks();
    const std::uint64_t width = settings.length + 1;
    const std::vector<std::uint64_t> starts(by_keys ? 1 : kTrials, start);
    Outcomes found;
    for (std::uint64_t key = 0; key < (by_keys ? kTrials : 1); ++key) {
      const auto vertices = graph.walk(settings, starts, key);
      for (std::size_t i = 0; i < starts.size(); ++i)
        found.emplace_back(vertices.begin() + static_cast<std::ptrdiff_t>(i * width),
                           vertices.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    }
    return found;
  }
};

std::vector<WalkCase> cases() {
  std::vector<WalkCase> cases;
  for (const bool weighted : {false, true})
    for (const auto& [p, q] :
         {std::pair{1.0, 1.0}, {0.25, 4.0}, {4.0, 0.25}, {1.0, 2.0}, {3.0, 1.0}})
      cases.push_back({{.length = 2, .p = p, .q = q}, weighted});
  return cases;
}

TEST(RandomWalks, HaveTheChancesOfNode2vec) {
  for (const WalkCase& c : cases())
    for (const std::uint64_t start : {0, 1, 2, 3, 5})
      for (const bool by_keys : {false, true})
        EXPECT_GT(likelihood(c.outcomes(start, by_keys), c.chances(start)), kLeast)
            << c.settings.p << " " << c.settings.q << " from " << start << " " << c.weighted;
}

// Steps back outweigh all others, or proposals are hardly ever taken, so that all factors are
// computed.
TEST(RandomWalks, HaveTheChancesOfFarParameters) {
  for (const WalkCase& c : {WalkCase{{.length = 2, .p = 1e-3, .q = 2}, false},
                            {{.length = 2, .p = 1e-3, .q = 2}, true},
                            {{.length = 2, .p = 1e3, .q = 1e4}, false},
                            {{.length = 2, .p = 1e3, .q = 1e4}, true}})
    for (const std::uint64_t start : {5, 0}) {
      Chances chances = c.chances(start);
      Outcomes outcomes = c.outcomes(start, false);
      double rare = 0;  // counted together
      std::erase_if(chances, [&](const auto& one) {
        if (one.second * kTrials >= 10) return false;
        for (Outcome& outcome : outcomes)
          if (outcome == one.first) outcome = {0};
        rare += one.second;
        return true;
      });
      if (rare > 0) chances[{0}] = rare;
      EXPECT_GT(likelihood(outcomes, chances), kLeast)
          << start << " " << c.settings.p << " " << c.weighted;
    }
}

TEST(RandomWalks, RestartByChance) {
  const WalkCase c{{.length = 1, .restart = 0.3}};
  for (const std::uint64_t start : {0, 5}) {
    Chances chances;
    for (const auto& [v, chance] : c.next(start, WalkCase::kNone, start))
      chances[{start, v}] = chance;
    EXPECT_GT(likelihood(c.outcomes(start, false), chances), kLeast) << start;
  }
  // The second step of a walk that restarts knows no vertex before.
  const WalkCase again{{.length = 2, .p = 1e-3, .q = 1, .restart = 0.5}};
  Outcomes after_restart;
  Chances chances;
  for (const Outcome& outcome : again.outcomes(1, true))
    if (outcome[1] == 1) after_restart.push_back({outcome[2]});
  for (const auto& [v, chance] : again.next(1, WalkCase::kNone, 1)) chances[{v}] = chance;
  EXPECT_GT(after_restart.size(), kTrials / 3);
  EXPECT_GT(likelihood(after_restart, chances), kLeast);
}

TEST(RandomWalks, BiasIsSeen) {
  WalkCase c{{.length = 2, .p = 4, .q = 0.25}};
  const Outcomes outcomes = c.outcomes(3, false);
  EXPECT_GT(likelihood(outcomes, c.chances(3)), kLeast);
  c.settings.q = 0.4;
  EXPECT_LT(likelihood(outcomes, c.chances(3)), kLeast);
  c.settings = {.length = 2, .p = 2, .q = 0.25};
  EXPECT_LT(likelihood(outcomes, c.chances(3)), kLeast);
}

// Rows that are not sorted, long walks, ids of both widths, any number of threads and any company.
TEST(RandomWalks, DependOnKeyAndNumberAlone) {
  for (const SampleGraph& graph : sample_graphs())
    for (const bool weighted : {false, true})
      for (const WalkSettings& settings : {WalkSettings{},
                                           {.length = 0},
                                           {.length = 40},
                                           {.length = 30, .p = 0.1, .q = 3},
                                           {.length = 30, .p = 2, .q = 0.5, .restart = 0.1}}) {
        const std::span<const float> weights =
            weighted ? std::span<const float>(graph.weights) : std::span<const float>();
        const RandomWalks walks(graph.with_ids_of(true), weights);
        const SampleSeeds starts(graph.graph.vertices(), 333, false);
        const std::uint64_t width = settings.length + 1;
        const auto found = walks.walk(settings, starts.ids, 5);
        ASSERT_EQ(found.size(), starts.ids.size() * width);
        for (std::size_t i = 0; i < starts.ids.size(); ++i) {
          ASSERT_EQ(found[i * width], starts.ids[i]);
          for (std::size_t s = 0; s < settings.length; ++s) {
            const std::uint64_t at = found[i * width + s], to = found[i * width + s + 1];
            bool leads = false, end = true;
            for (EdgeOffset e = graph.graph.offsets[at]; e < graph.graph.offsets[at + 1]; ++e) {
              const bool open = !weighted || graph.weights[e] > 0;
              leads = leads || (open && graph.graph.neighbours[e] == to);
              end = end && !open;
            }
            const bool restarts = settings.restart > 0 && to == starts.ids[i];
            ASSERT_TRUE(leads || restarts || (end && to == at)) << at << " " << to;
          }
        }
        for (const int threads : {1, 3, 7}) {
          const ThreadCount count(threads);
          EXPECT_EQ(walks.walk(settings, starts.ids, 5), found);
        }
        EXPECT_EQ(RandomWalks(graph.with_ids_of(false), weights).walk(settings, starts.ids, 5),
                  found);
        const std::span some = std::span(starts.ids).first(starts.ids.size() / 3);
        const auto fewer = walks.walk(settings, some, 5);
        EXPECT_TRUE(std::ranges::equal(fewer, std::span(found).first(fewer.size())));
        WalkSettings later = settings;
        later.first = some.size();
        const auto rest = walks.walk(later, std::span(starts.ids).subspan(some.size()), 5);
        EXPECT_TRUE(std::ranges::equal(rest, std::span(found).subspan(fewer.size())));
        if (settings.length == 40 && graph.graph.edges() > 100) {
          EXPECT_NE(walks.walk(settings, starts.ids, 6), found);
        }
      }
}

TEST(RandomWalks, MostVisitedAreThoseOfTheWalks) {
  const SampleGraph graph(random_csr<std::uint64_t>(50, 300, 3));
  const RandomWalks walks(graph.graph, graph.weights);
  const SampleSeeds starts(50, 30, false);
  constexpr std::uint64_t kWalks = 150, kCount = 7;
  const WalkSettings settings{.length = 3, .p = 0.5, .restart = 0.2, .first = 1000};
  std::vector<std::uint64_t> repeated;
  for (const std::uint64_t start : starts.ids) repeated.insert(repeated.end(), kWalks, start);
  const auto steps = walks.walk(settings, repeated, 9);
  for (const int threads : {1, 4}) {
    const ThreadCount limit(threads);
    const VisitedVertices most = walks.most_visited(settings, kWalks, kCount, starts.ids, 9);
    ASSERT_EQ(most.offsets.size(), starts.ids.size() + 1);
    for (std::size_t i = 0; i < starts.ids.size(); ++i) {
      std::map<std::uint64_t, std::int64_t> visits;
      for (std::size_t k = i * kWalks * 4; k < (i + 1) * kWalks * 4; ++k)
        if (steps[k] != starts.ids[i]) ++visits[steps[k]];
      std::vector<std::pair<std::int64_t, std::uint64_t>> expected;
      for (const auto& [v, count] : visits) expected.emplace_back(-count, v);
      std::ranges::sort(expected);
      expected.resize(std::min<std::size_t>(expected.size(), kCount));
      ASSERT_EQ(most.offsets[i + 1] - most.offsets[i], expected.size());
      for (std::size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(most.vertices[most.offsets[i] + k], expected[k].second);
        EXPECT_EQ(most.visits[most.offsets[i] + k], -expected[k].first);
      }
    }
  }
}

TEST(RandomWalks, Refuses) {
  const RandomWalks walks(kGraph);
  const std::vector<std::uint64_t> starts = {1, 2}, bad = {0, 6};
  const auto error = [&](const WalkSettings& settings, std::span<const std::uint64_t> from) {
    return error_of([&] { walks.walk(settings, from, 1); });
  };
  EXPECT_EQ(error({}, bad), "start 1 is 6, outside 0..5");
  EXPECT_EQ(error({.p = 0}, starts), "p is 0, outside 1e-09..1000000000");
  EXPECT_EQ(error({.q = std::numeric_limits<double>::quiet_NaN()}, starts),
            "q is nan, outside 1e-09..1000000000");
  EXPECT_EQ(error({.restart = 1}, starts),
            "the chance of a restart is 1; it must be at least 0 and below 1");
  EXPECT_EQ(error({.length = 1ull << 40}, starts),
            "a walk of 1099511627776 steps is asked for; at most 2147483648 are allowed");
  const std::vector<std::uint64_t> many(1 << 20, 1);
  EXPECT_THROW(walks.walk({.length = 1ull << 31}, many, 1), DoesNotFitError);
  EXPECT_EQ(error_of([&] { walks.most_visited({}, 0, 3, starts, 1); }),
            "0 walks of 1 steps from each start, of which 3 vertices are kept; give at least one "
            "each, and less than 2^32 steps");
  EXPECT_EQ(error_of([&] { walks.most_visited({.length = 0}, 1ull << 40, 3, starts, 1); }),
            "1099511627776 walks of 0 steps from each start, of which 3 vertices are kept; give at "
            "least one each, and less than 2^32 steps");
  EXPECT_EQ(error_of([&] { RandomWalks(kGraph, std::vector<float>{1}); }),
            "there are 1 weights, but the graph has 15 edges");
  EXPECT_EQ(walks.walk({.length = 3}, {}, 1).size(), 0u);
  EXPECT_EQ(error_of([] { RandomWalks(Csr64{}).walk({}, std::vector<std::uint64_t>{0}, 1); }),
            "start 0 is 0, an id where there are no vertices");
}

}  // namespace
}  // namespace plait::test
