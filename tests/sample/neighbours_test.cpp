#include "plait/sample/neighbours.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "plait/base/parallel.h"
#include "plait/sample/draw.h"
#include "tests/support/error_of.h"
#include "tests/support/sample_case.h"

namespace plait::test {
namespace {

const std::vector<std::vector<std::int64_t>> kFanouts = {{},         {1},      {3, 2},   {-1},
                                                         {2, -1, 3}, {63, 64}, {300, 5}, {8, 8, 8}};

TEST(NeighbourSampler, EqualsReference) {
  std::uint64_t key = 7;
  for (const SampleGraph& graph : sample_graphs())
    for (const SampleKind& kind : sample_kinds())
      for (const auto& fanouts : kFanouts) {
        SCOPED_TRACE(kind.name() + ", " + std::to_string(graph.graph.vertices()) +
                     " vertices, key " + std::to_string(++key));
        const SampleSeeds seeds(graph.graph.vertices(), key % 5 * 2, kind.timed());
        const AnyCsr csr = graph.with_ids_of(key % 3 == 0);
        const SampleSettings settings = kind.settings(fanouts);
        const SampleValues values = kind.values(graph);
        expect_equal(
            sample_once(csr, settings, values, seeds, key),
            sample_neighbours_reference(csr, settings, values, seeds.ids, key, seeds.times));
      }
}

// Hops of thousands of targets are drawn by all threads. Sizes of rows are on both sides of the
// bound between numbers of 32 and 64 bits.
TEST(NeighbourSampler, DoesNotDependOnThreads) {
  std::vector<std::uint64_t> degrees(3000, 9);
  degrees[0] = 70000, degrees[1] = 65536, degrees[2] = 65537;
  const SampleGraph graph(csr_of_degrees(degrees, 3));
  for (const SampleKind& kind : sample_kinds()) {
    SCOPED_TRACE(kind.name());
    SampleSeeds seeds(3000, 200, kind.timed());
    for (std::uint64_t v = 0; v < 3; ++v) seeds.ids[v] = v;
    const SampleSettings settings = kind.settings({40, 5, 3});
    const SampleValues values = kind.values(graph);
    const auto sample = [&](int threads) {
      const ThreadCount count(threads);
      return sample_once(graph.graph, settings, values, seeds, 3);
    };
    const Sample one = sample(1);
    expect_equal(sample(2), one);
    expect_equal(sample(3), one);
    expect_equal(
        one, sample_neighbours_reference(graph.graph, settings, values, seeds.ids, 3, seeds.times));
  }
}

// Numbers follow from the edges alone: seeds first, then vertices as edges reach them.
void expect_numbered(const SampleGraph& graph, const Sample& sample,
                     const std::vector<std::uint64_t>& seeds, HopTargets targets) {
  const bool disjoint = !sample.trees.empty();
  const auto tree_of = [&](std::uint64_t number) { return disjoint ? sample.trees[number] : 0; };
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < seeds.size(); ++i) {
    ASSERT_EQ(sample.vertices[i], seeds[i]);
    if (disjoint) {
      ASSERT_EQ(sample.trees[i], i);
    }
    numbers.emplace(std::pair{tree_of(i), seeds[i]}, i);
  }
  std::uint64_t found = seeds.size(), first = 0;
  for (const Sample::Hop& hop : sample.hops) {
    ASSERT_EQ(hop.first_target, first);
    ASSERT_EQ(hop.targets(), found - first);
    if (targets == HopTargets::newest) first = found;
    for (std::uint64_t t = 0; t < hop.targets(); ++t)
      for (std::uint64_t i = hop.offsets[t]; i < hop.offsets[t + 1]; ++i) {
        const std::uint64_t target = hop.first_target + t, vertex = sample.vertices[target];
        ASSERT_GE(hop.edges[i], graph.graph.offsets[vertex]);
        ASSERT_LT(hop.edges[i], graph.graph.offsets[vertex + 1]);
        const std::uint64_t source = graph.graph.neighbours[hop.edges[i]];
        if (numbers.emplace(std::pair{tree_of(target), source}, found).second) {
          ASSERT_EQ(sample.vertices[found], source);
          ASSERT_EQ(tree_of(found), tree_of(target));
          ++found;
        }
        ASSERT_EQ(hop.neighbours[i], numbers.at({tree_of(target), source}));
      }
    ASSERT_EQ(hop.vertices, found);
  }
  ASSERT_EQ(sample.vertices.size(), found);
}

// Rows have as many edges as their kind promises, and no edge twice without replacement.
void expect_counts(const SampleGraph& graph, const Sample& sample, const SampleKind& kind,
                   const std::vector<std::int64_t>& fanouts, const SampleSeeds& seeds) {
  for (std::size_t h = 0; h < fanouts.size(); ++h) {
    const Sample::Hop& hop = sample.hops[h];
    for (std::uint64_t t = 0; t < hop.targets(); ++t) {
      const std::uint64_t target = hop.first_target + t, vertex = sample.vertices[target];
      const auto may_be_drawn = [&](EdgeOffset e) {
        const auto now = [&] { return seeds.times[sample.trees[target]]; };
        return !(kind.weighted && graph.weights[e] == 0) &&
               !(kind.by_edges && graph.edge_times[e] > now()) &&
               !(kind.by_vertices && graph.vertex_times[graph.graph.neighbours[e]] > now());
      };
      std::uint64_t eligible = 0;
      for (EdgeOffset e = graph.graph.offsets[vertex]; e < graph.graph.offsets[vertex + 1]; ++e)
        eligible += may_be_drawn(e);
      const std::uint64_t count = hop.offsets[t + 1] - hop.offsets[t];
      const std::set<EdgeOffset> distinct(hop.edges.begin() + hop.offsets[t],
                                          hop.edges.begin() + hop.offsets[t + 1]);
      for (const EdgeOffset e : distinct) ASSERT_TRUE(may_be_drawn(e));
      const auto fanout = static_cast<std::uint64_t>(fanouts[h]);  // -1 is more than all
      if (kind.replace && fanouts[h] != -1) {
        ASSERT_EQ(count, eligible == 0 ? 0 : fanout);
      } else {
        ASSERT_EQ(count, std::min(eligible, fanout));
        ASSERT_EQ(distinct.size(), count);
      }
    }
  }
}

TEST(NeighbourSampler, GivesWhatItPromises) {
  std::uint64_t key = 1;
  for (const SampleGraph& graph : sample_graphs())
    for (const SampleKind& kind : sample_kinds()) {
      SCOPED_TRACE(kind.name() + ", key " + std::to_string(key));
      const auto& fanouts = kFanouts[++key % kFanouts.size()];
      const SampleSeeds seeds(graph.graph.vertices(), 9, kind.timed());
      const Sample sample =
          sample_once(graph.graph, kind.settings(fanouts), kind.values(graph), seeds, key);
      expect_numbered(graph, sample, seeds.ids, kind.targets);
      expect_counts(graph, sample, kind, fanouts, seeds);
    }
}

// The latest edges, by hand: times 5, 3, 5, 1, 5, 4 and a seed at 5 or 4.
TEST(NeighbourSampler, TakesTheLatestEdges) {
  SampleGraph graph(csr_of_degrees({6, 0}, 1));
  graph.edge_times = {5, 3, 5, 1, 5, 4};
  const SampleKind kind{.disjoint = true, .by_edges = true, .time = TimeRule::last};
  SampleSeeds seeds(1, 0, true);
  seeds.ids = {0, 0, 0}, seeds.times = {5, 4, 0};
  const Sample sample = sample_once(graph.graph, kind.settings({2}), kind.values(graph), seeds, 1);
  EXPECT_EQ(sample.hops[0].edges, (RawVector<EdgeOffset>{0, 2, 1, 5}));
  EXPECT_EQ(sample.hops[0].offsets, (RawVector<std::uint32_t>{0, 2, 4, 4}));
}

// With all vertices as targets, the draws of a vertex at a hop do not depend on the other seeds.
TEST(NeighbourSampler, DrawsDependOnKeyAndVertexAlone) {
  const SampleGraph graph(random_csr<std::uint64_t>(300, 6000, 4));
  const SampleKind kind{.targets = HopTargets::all};
  const auto edges_of = [&](const std::vector<std::uint64_t>& ids, std::uint64_t key) {
    SampleSeeds seeds(1, 0, false);
    seeds.ids = ids;
    const Sample sample = sample_once(graph.graph, kind.settings({4, 4, 4}), {}, seeds, key);
    std::map<std::pair<std::size_t, std::uint64_t>, std::vector<EdgeOffset>> edges;
    for (std::size_t h = 0; h < 3; ++h) {
      const Sample::Hop& hop = sample.hops[h];
      for (std::uint64_t t = 0; t < hop.targets(); ++t)
        edges[{h, sample.vertices[t]}].assign(hop.edges.begin() + hop.offsets[t],
                                              hop.edges.begin() + hop.offsets[t + 1]);
    }
    return edges;
  };
  const auto alone = edges_of({5}, 1), many = edges_of({9, 77, 5, 120}, 1),
             other = edges_of({5}, 2);
  for (const auto& [place, edges] : alone) EXPECT_EQ(many.at(place), edges);
  EXPECT_NE(other.at({0, 5}), alone.at({0, 5}));
  EXPECT_NE(alone.at({1, 5}), alone.at({0, 5}));
  EXPECT_NE(sample_key(1, 2), sample_key(2, 1));
  EXPECT_NE(sample_key(1, 2), sample_key(1, 3));
}

// The trees of a sample: for each hop, the places of the edges of each tree.
std::vector<std::vector<EdgeOffset>> edges_by_tree(const Sample& sample) {
  std::vector<std::vector<EdgeOffset>> trees(sample.seeds * sample.hops.size());
  for (std::size_t h = 0; h < sample.hops.size(); ++h) {
    const Sample::Hop& hop = sample.hops[h];
    for (std::uint64_t t = 0; t < hop.targets(); ++t)
      for (std::uint64_t e = hop.offsets[t]; e < hop.offsets[t + 1]; ++e)
        trees[sample.trees[hop.first_target + t] * sample.hops.size() + h].push_back(hop.edges[e]);
  }
  return trees;
}

TEST(NeighbourSampler, PartsOfADisjointBatchAreTheWhole) {
  const SampleGraph graph(random_csr<std::uint64_t>(500, 9000, 2));
  const SampleKind kind{.disjoint = true, .by_edges = true, .targets = HopTargets::all};
  const NeighbourSampler sampler(graph.graph, kind.settings({4, 2}), kind.values(graph));
  const auto workspace = sampler.workspace();
  SampleSeeds seeds(500, 20, true);
  for (std::size_t i = 0; i < 4; ++i) seeds.ids[i] = 3, seeds.times[i] = 5;  // apart by their place
  const auto whole = edges_by_tree(sampler.sample(seeds.ids, 7, *workspace, seeds.times));
  EXPECT_NE(whole[0], whole[2]);
  std::vector<std::vector<EdgeOffset>> parts;
  using Part = std::pair<std::size_t, std::size_t>;
  for (const auto& [begin, end] : std::vector<Part>{{0, 1}, {1, 3}, {3, 20}}) {
    const auto part = edges_by_tree(sampler.sample(
        std::span(seeds.ids).subspan(begin, end - begin), 7, *workspace,
        std::span(seeds.times).subspan(begin, end - begin), static_cast<std::uint32_t>(begin)));
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_EQ(parts, whole);
}

TEST(NeighbourSampler, OneTreeIsKeyedByNoPlace) {
  const SampleGraph graph(random_csr<std::uint64_t>(50, 900, 2));
  const NeighbourSampler sampler(graph.graph, {.fanouts = {4, 2}});
  const std::vector<std::uint64_t> seeds{3, 9};
  expect_equal(sampler.sample(seeds, 7, *sampler.workspace(), {}, 5),
               sampler.sample(seeds, 7, *sampler.workspace()));
}

TEST(NeighbourSampler, ServesSeveralThreadsAtOnce) {
  const SampleGraph graph(random_csr<std::uint64_t>(2000, 40000, 6));
  for (const SampleKind& kind : {SampleKind{}, SampleKind{.disjoint = true, .weighted = true}}) {
    const NeighbourSampler sampler(graph.graph, kind.settings({10, 10}), kind.values(graph));
    const SampleSeeds seeds(2000, 100, false);
    std::vector<Sample> found(24);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        const auto workspace = sampler.workspace();
        for (std::uint64_t key = t; key < found.size(); key += 3)
          found[key] = sampler.sample(seeds.ids, key, *workspace);
      });
    for (std::thread& thread : threads) thread.join();
    for (std::uint64_t key = 0; key < found.size(); ++key)
      expect_equal(found[key], sample_neighbours_reference(graph.graph, kind.settings({10, 10}),
                                                           kind.values(graph), seeds.ids, key));
  }
}

// A workspace is as before after every call, also after one that found most vertices.
TEST(NeighbourSampler, WorkspaceIsReused) {
  const SampleGraph graph(random_csr<std::uint64_t>(3000, 9000, 6));
  for (const bool disjoint : {false, true}) {
    const NeighbourSampler sampler(graph.graph, {.fanouts = {4, 4}, .disjoint = disjoint});
    const auto workspace = sampler.workspace();
    for (const std::size_t count : {3, 2000, 0, 5}) {
      const SampleSeeds seeds(3000, count, false);
      expect_equal(
          sampler.sample(seeds.ids, count, *workspace),
          sample_neighbours_reference(graph.graph, {.fanouts = {4, 4}, .disjoint = disjoint}, {},
                                      seeds.ids, count));
    }
  }
}

TEST(NeighbourSampler, RefusesWhatMakesNoSense) {
  SampleGraph graph(csr_of_degrees({3, 2}, 1));
  const auto refusal = [&](const SampleKind& kind, std::vector<std::int64_t> fanouts) {
    return error_of(
        [&] { NeighbourSampler(graph.graph, kind.settings(fanouts), kind.values(graph)); });
  };
  EXPECT_EQ(refusal({}, {5, 0}), "fan-out 0 of hop 1 is outside 1..16777216; use -1 for all edges");
  EXPECT_EQ(refusal({}, {-2}), "fan-out -2 of hop 0 is outside 1..16777216; use -1 for all edges");
  EXPECT_EQ(refusal({}, {16777217}),
            "fan-out 16777217 of hop 0 is outside 1..16777216; use -1 for all edges");
  EXPECT_EQ(refusal({}, std::vector<std::int64_t>(257, 1)),
            "there are 257 fan-outs; at most 256 are allowed");
  EXPECT_EQ(refusal({.by_edges = true}, {1}),
            "times need disjoint samples, because each seed has a time of its own");
  EXPECT_EQ(refusal({.disjoint = true, .time = TimeRule::last}, {1}),
            "the latest edges can be taken only if edges or vertices have times");
  SampleKind last{.disjoint = true, .by_vertices = true, .time = TimeRule::last};
  last.replace = true;
  EXPECT_EQ(refusal(last, {1}), "the latest edges cannot be taken with replacement");
  last.replace = false, last.weighted = true;
  EXPECT_EQ(refusal(last, {1}), "the latest edges cannot be taken by weight");
  for (const float weight : {-1.0f, INFINITY, std::nanf("")}) {
    graph.weights[3] = weight;
    EXPECT_NE(refusal({.weighted = true}, {1}).find("the weight of edge 3 is"), std::string::npos);
  }
  graph.weights.pop_back(), graph.edge_times.pop_back(), graph.vertex_times.pop_back();
  EXPECT_EQ(refusal({.weighted = true}, {1}), "there are 4 weights, but the graph has 5 edges");
  EXPECT_EQ(refusal({.disjoint = true, .by_edges = true}, {1}),
            "there are 4 times of edges, but the graph has 5 edges");
  EXPECT_EQ(refusal({.disjoint = true, .by_vertices = true}, {1}),
            "there are 1 times of vertices, but the graph has 2 vertices");
}

TEST(NeighbourSampler, RefusesSeeds) {
  const SampleGraph graph(csr_of_degrees({3, 2}, 1));
  const auto refusal = [&](const SampleKind& kind, std::vector<std::uint64_t> ids,
                           std::vector<std::int64_t> times) {
    SampleSeeds seeds(1, 0, false);
    seeds.ids = std::move(ids), seeds.times = std::move(times);
    return error_of(
        [&] { sample_once(graph.graph, kind.settings({1}), kind.values(graph), seeds, 1); });
  };
  EXPECT_EQ(refusal({}, {0, 2}, {}), "seed 1 is 2, outside 0..1");
  EXPECT_EQ(refusal({}, {~std::uint64_t{0}}, {}), "seed 0 is -1, outside 0..1");
  EXPECT_EQ(refusal({}, {0}, {1}), "the seeds have times, but neither edges nor vertices have any");
  EXPECT_EQ(refusal({.disjoint = true, .by_edges = true}, {0, 1}, {1}),
            "there are 1 times of seeds, but 2 seeds; give one for each");
  const NeighbourSampler empty(Csr64{}, {.fanouts = {1}});
  const std::vector<std::uint64_t> seeds{0};
  EXPECT_EQ(error_of([&] { empty.sample(seeds, 1, *empty.workspace()); }),
            "seed 0 is 0, an id where there are no vertices");
}

TEST(NeighbourSampler, RefusesSamplesThatDoNotFit) {
  const SampleGraph graph(csr_of_degrees({1}, 1));
  const NeighbourSampler sampler(graph.graph, {.fanouts = {1 << 24}, .replace = true});
  const std::vector<std::uint64_t> seeds(256);
  EXPECT_THROW(sampler.sample(seeds, 1, *sampler.workspace()), DoesNotFitError);
}

}  // namespace
}  // namespace plait::test
