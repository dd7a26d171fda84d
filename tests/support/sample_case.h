// Graphs with values, and all settings of samplers on them.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "plait/sample/neighbours.h"
#include "tests/support/random_graph.h"

namespace plait::test {

// A graph whose edges and vertices have weights and times.
struct SampleGraph {
  Csr64 graph;
  std::vector<float> weights;
  std::vector<std::int64_t> edge_times, vertex_times;

  explicit SampleGraph(Csr64 csr, unsigned seed = 1) : graph(std::move(csr)) {
    std::mt19937 random(seed);
    for (EdgeOffset e = 0; e < graph.edges(); ++e) {
      weights.push_back(random() % 4 == 0 ? 0.0f : static_cast<float>(random() % 9 + 1) / 4);
      edge_times.push_back(static_cast<std::int64_t>(random() % 8) - 2);
    }
    for (std::uint64_t v = 0; v < graph.vertices(); ++v)
      vertex_times.push_back(static_cast<std::int64_t>(random() % 8) - 2);
  }

  AnyCsr with_ids_of(bool wide) const {
    if (wide) return graph;
    std::vector<std::uint32_t> narrow(graph.neighbours.begin(), graph.neighbours.end());
    return Csr32{graph.offsets, std::move(narrow), {}};
  }
};

// A graph whose row i has degrees[i] edges from vertices that are drawn at random.
inline Csr64 csr_of_degrees(const std::vector<std::uint64_t>& degrees, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<EdgeOffset> offsets{0};
  std::vector<std::uint64_t> neighbours;
  for (const std::uint64_t degree : degrees) {
    for (std::uint64_t i = 0; i < degree; ++i) neighbours.push_back(random() % degrees.size());
    offsets.push_back(neighbours.size());
  }
  return {std::move(offsets), std::move(neighbours), {}};
}

// Graphs of all shapes that samplers treat apart.
inline std::vector<SampleGraph> sample_graphs() {
  std::vector<SampleGraph> graphs;
  for (const auto& degrees : std::vector<std::vector<std::uint64_t>>{
           {0}, {1}, {3}, {0, 0, 0}, {7, 0, 8, 9, 0}, {700, 1, 2, 64, 65, 63, 0, 3}})
    graphs.emplace_back(csr_of_degrees(degrees, 5));
  graphs.emplace_back(random_csr<std::uint64_t>(40, 300, 1));
  graphs.emplace_back(random_csr<std::uint64_t>(500, 4000, 2));
  return graphs;
}

// What a sampler draws by.
struct SampleKind {
  bool replace = false, disjoint = false, weighted = false, by_edges = false, by_vertices = false;
  Targets targets = Targets::newest;
  TimeRule time = TimeRule::uniform;

  bool timed() const { return by_edges || by_vertices; }
  SampleSettings settings(std::vector<std::int64_t> fanouts) const {
    return {std::move(fanouts), replace, disjoint, targets, time};
  }
  SampleValues values(const SampleGraph& graph) const {
    SampleValues values;
    if (weighted) values.weights = graph.weights;
    if (by_edges) values.edge_times = graph.edge_times;
    if (by_vertices) values.vertex_times = graph.vertex_times;
    return values;
  }
  std::string name() const {
    std::string name = targets == Targets::all ? "all" : "newest";
    if (replace) name += " replace";
    if (disjoint) name += " disjoint";
    if (weighted) name += " weighted";
    if (by_edges) name += " edge times";
    if (by_vertices) name += " vertex times";
    return time == TimeRule::last ? name + " last" : name;
  }
};

// Returns every kind that samplers accept.
inline std::vector<SampleKind> sample_kinds() {
  std::vector<SampleKind> kinds;
  for (unsigned bits = 0; bits < 128; ++bits) {
    const auto bit = [&](unsigned i) { return (bits >> i & 1) != 0; };
    const SampleKind kind{bit(0),
                          bit(1),
                          bit(2),
                          bit(3),
                          bit(4),
                          bit(5) ? Targets::all : Targets::newest,
                          bit(6) ? TimeRule::last : TimeRule::uniform};
    if (kind.timed() && !kind.disjoint) continue;
    if (kind.time == TimeRule::last && (!kind.timed() || kind.replace || kind.weighted)) continue;
    kinds.push_back(kind);
  }
  return kinds;
}

// Seeds of which some are repeated, and their times.
struct SampleSeeds {
  std::vector<std::uint64_t> ids;
  std::vector<std::int64_t> times;

  SampleSeeds(std::uint64_t vertices, std::size_t count, bool timed, unsigned seed = 1) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < count && vertices > 0; ++i) {
      ids.push_back(i % 4 == 3 ? ids[random() % i] : random() % vertices);
      if (timed) times.push_back(static_cast<std::int64_t>(random() % 9) - 3);
    }
  }
};

inline void expect_equal(const Sample& found, const Sample& expected) {
  EXPECT_EQ(found.seeds, expected.seeds);
  EXPECT_EQ(found.vertices, expected.vertices);
  EXPECT_EQ(found.trees, expected.trees);
  ASSERT_EQ(found.hops.size(), expected.hops.size());
  for (std::size_t h = 0; h < expected.hops.size(); ++h) {
    const Sample::Hop &a = found.hops[h], &b = expected.hops[h];
    EXPECT_EQ(a.first_target, b.first_target) << "hop " << h;
    EXPECT_EQ(a.offsets, b.offsets) << "hop " << h;
    EXPECT_EQ(a.edges, b.edges) << "hop " << h;
    EXPECT_EQ(a.neighbours, b.neighbours) << "hop " << h;
    EXPECT_EQ(a.vertices, b.vertices) << "hop " << h;
  }
}

inline Sample sample_once(const AnyCsr& graph, const SampleSettings& settings,
                          const SampleValues& values, const SampleSeeds& seeds, std::uint64_t key) {
  const NeighbourSampler sampler(graph, settings, values);
  return sampler.sample(seeds.ids, key, *sampler.workspace(), seeds.times);
}

}  // namespace plait::test
