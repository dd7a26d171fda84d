// Quotient graphs and local moves, against plain versions with maps.
#include "plait/communities/moves.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "plait/base/parallel.h"
#include "plait/communities/moves_rule.h"
#include "plait/graph/generate.h"
#include "plait/graph/shapes.h"
#include "plait/reorder/communities.h"
#include "tests/support/random_graph.h"

namespace plait::test {
namespace {

constexpr EdgeOffset kNeverLarge = ~EdgeOffset{0};

using Rows = std::vector<std::map<std::uint32_t, std::uint64_t>>;

Rows rows_of(const Quotient& graph) {
  Rows rows(graph.communities());
  for (std::uint32_t c = 0; c < graph.communities(); ++c)
    for (EdgeOffset e = graph.offsets[c]; e < graph.offsets[c + 1]; ++e)
      EXPECT_TRUE(rows[c].emplace(graph.neighbours[e], graph.weights[e]).second);
  return rows;
}

// A graph with loops and parallel edges; its reverse edges, too, if `both`.
AnyCsr graph_of(std::uint64_t vertices, std::uint64_t edges, unsigned seed, bool both) {
  std::vector<Edge> list = random_edges(vertices, edges, seed);
  for (std::size_t i = 0, count = list.size(); both && i < count; ++i)
    list.push_back({list[i].target, list[i].source, 1});
  if (seed % 2 == 0) return build_csr(edge_list<std::uint64_t>(vertices, list, false));
  return build_csr(edge_list<std::uint32_t>(vertices, list, false));
}

// Compares a quotient with sums over the edges of the graph, and a quotient of it with sums of
// sums.
void expect_sums(const AnyCsr& any, bool symmetric, std::uint32_t communities) {
  std::vector<std::uint32_t> labels(vertex_count(any)), second(communities);
  for (std::size_t v = 0; v < labels.size(); ++v)
    labels[v] = static_cast<std::uint32_t>(v * v + v / 3) % communities;
  for (std::uint32_t c = 0; c < communities; ++c) second[c] = c / 2;
  Rows rows(communities), second_rows(communities);
  std::vector<std::uint64_t> degrees(communities), second_degrees((communities + 1) / 2);
  const auto count = [&](std::uint32_t a, std::uint32_t b) {
    ++degrees[a];
    ++second_degrees[second[a]];
    if (a != b) ++rows[a][b];
    if (second[a] != second[b]) ++second_rows[second[a]][second[b]];
  };
  std::visit(
      [&](const auto& graph) {
        for (std::uint64_t v = 0; v < graph.vertices(); ++v)
          for (const auto u : graph.row(v)) {
            count(labels[v], labels[u]);
            if (!symmetric) count(labels[u], labels[v]);
          }
      },
      any);
  second_rows.resize(second_degrees.size());
  const Quotient found = quotient_of(any, symmetric, labels, communities);
  EXPECT_EQ(rows_of(found), rows);
  EXPECT_EQ(found.degrees, degrees);
  EXPECT_EQ(found.total, edge_count(any) * (symmetric ? 1 : 2));
  const Quotient again =
      quotient_of(found.rows(), second, static_cast<std::uint32_t>(second_degrees.size()));
  EXPECT_EQ(rows_of(again), second_rows);
  EXPECT_EQ(again.degrees, second_degrees);
  EXPECT_EQ(again.total, found.total);
}

TEST(Quotient, SumsEdges) {
  for (unsigned seed = 0; seed < 12; ++seed)
    for (const bool symmetric : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, {}", seed, symmetric));
      const std::uint64_t vertices = 1 + seed * seed * 40;
      const AnyCsr graph = graph_of(vertices, seed * vertices, seed, symmetric);
      for (const std::uint32_t communities : {1u, 7u, 600u})  // some may have no members
        expect_sums(graph, symmetric, communities);
    }
  expect_sums(graph_of(60000, 400000, 1, false), false, 50000);  // work for several threads
}

// The moves of merge.h, one community after the other.
class PlainMoves {
 public:
  PlainMoves(const Quotient& graph, double resolution, bool at_once)
      : graph_(graph),
        by_chance_(resolution / static_cast<double>(graph.total)),
        at_once_(at_once),
        labels_(graph.communities()),
        ends_(graph.degrees),
        sizes_(labels_.size(), 1) {
    std::iota(labels_.begin(), labels_.end(), 0u);
  }

  std::vector<std::uint32_t> run() {
    std::uint64_t before = moves_at_first(labels_.size());
    for (std::uint32_t round = 0; round < kMostMoveRounds; ++round) {
      std::uint64_t moves = 0;
      for (std::uint32_t turn = 0; at_once_ && turn < kMoveTurns; ++turn) {
        std::map<std::uint32_t, std::uint32_t> chosen;
        for (std::uint32_t c = 0; c < labels_.size(); ++c)
          if (turn_of(c, round) == turn) chosen[c] = best(c);
        for (const auto& [c, label] : chosen) moves += move(c, label);
      }
      for (std::uint32_t c = 0; !at_once_ && c < labels_.size(); ++c) moves += move(c, best(c));
      if (few_moves(moves, labels_.size(), MoveRules{}.least_share) ||
          (at_once_ && hardly_fewer(moves, before)))
        break;
      before = moves;
    }
    return labels_;
  }

 private:
  std::uint32_t best(std::uint32_t c) const {
    const std::uint32_t own = labels_[c];
    std::map<std::uint32_t, std::uint64_t> edges;
    for (EdgeOffset e = graph_.offsets[c]; e < graph_.offsets[c + 1]; ++e)
      edges[labels_[graph_.neighbours[e]]] += graph_.weights[e];
    const auto gain = [&](std::uint32_t label, std::uint64_t ends) {
      return merge_gain(edges.contains(label) ? edges.at(label) : 0, by_chance_, graph_.degrees[c],
                        ends);
    };
    std::uint32_t best = own;
    double most = gain(own, ends_[own] - graph_.degrees[c]);
    for (const auto& [label, weight] : edges) {  // ascending
      if (label == own || (at_once_ && must_stay(own, sizes_[own], label, sizes_[label]))) continue;
      if (gain(label, ends_[label]) > most) most = gain(label, ends_[label]), best = label;
    }
    return best;
  }

  bool move(std::uint32_t c, std::uint32_t label) {
    const bool moves = label != labels_[c];
    ends_[labels_[c]] -= graph_.degrees[c], --sizes_[labels_[c]];
    ends_[label] += graph_.degrees[c], ++sizes_[label];
    labels_[c] = label;
    return moves;
  }

  const Quotient& graph_;
  const double by_chance_;
  const bool at_once_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> sizes_;
};

void expect_plain_moves(const Quotient& graph) {
  for (const double resolution : {1.0, 0.25, 1e-4})
    for (const bool at_once : {false, true}) {
      SCOPED_TRACE(fmt::format("{} communities, {} entries, {}, {}", graph.communities(),
                               graph.neighbours.size(), resolution, at_once));
      ASSERT_EQ(merge(graph, resolution, at_once ? 0 : kNeverLarge),
                PlainMoves(graph, resolution, at_once).run());
    }
}

Quotient alone(const AnyCsr& graph) {
  std::vector<std::uint32_t> own(vertex_count(graph));
  std::iota(own.begin(), own.end(), 0u);
  return quotient_of(graph, false, own, static_cast<std::uint32_t>(own.size()));
}

// Rows of all lengths around that of a short one.
TEST(Merge, EqualsPlainMoves) {
  expect_plain_moves(alone(graph_of(0, 0, 1, false)));
  for (unsigned seed = 0; seed < 24; ++seed) {
    const std::uint64_t vertices = 1 + seed * 29;
    expect_plain_moves(alone(graph_of(vertices, vertices * (seed % 12), seed, false)));
  }
  expect_plain_moves(alone(star_both_ways(3000, true).graph));
  expect_plain_moves(alone(build_csr(generate_grid(60, 70))));
  const ThreadCount threads(3);
  expect_plain_moves(alone(graph_of(30000, 150000, 3, false)));
}

// Weights of more than 32 bits, and so large that gains are rounded.
TEST(Merge, EqualsPlainMovesOfHeavyEdges) {
  for (const int bits : {33, 50})
    for (unsigned seed = 1; seed < 6; ++seed) {
      Quotient graph = alone(graph_of(400, 400 * seed, seed, false));
      const Rows rows = rows_of(graph);
      graph.total = 0;
      for (std::uint32_t c = 0; c < graph.communities(); ++c) {
        graph.degrees[c] = 0;
        for (EdgeOffset e = graph.offsets[c]; e < graph.offsets[c + 1]; ++e) {
          graph.weights[e] = (graph.weights[e] << bits) + (c ^ graph.neighbours[e]) % 7;
          graph.degrees[c] += graph.weights[e];
        }
        graph.total += graph.degrees[c];
      }
      expect_plain_moves(graph);
    }
}

// Returns whether edges with a weight between vertices of one label connect all that have it.
bool are_connected(const Quotient& graph, const std::vector<std::uint32_t>& labels) {
  std::vector<bool> seen(labels.size());
  std::vector<std::uint32_t> reached;
  std::map<std::uint32_t, int> parts;
  for (std::uint32_t first = 0; first < labels.size(); ++first) {
    if (seen[first]) continue;
    if (++parts[labels[first]] > 1) return false;
    seen[first] = true;
    reached = {first};
    while (!reached.empty()) {
      const std::uint32_t v = reached.back();
      reached.pop_back();
      for (EdgeOffset e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e)
        if (const std::uint32_t u = graph.neighbours[e]; labels[u] == labels[v] && !seen[u])
          seen[u] = true, reached.push_back(u);
    }
  }
  return true;
}

// Also where a high resolution makes vertices wish to leave parts that others have joined.
TEST(LocalMoves, RefineToConnectedParts) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::uint64_t vertices = 50 + seed * 5;
    const Quotient graph = alone(graph_of(vertices, 2 * vertices, seed, true));
    const std::vector<std::uint32_t> together(vertices);
    for (const bool at_once : {false, true}) {
      MoveRules rules{.resolution = 1.0 + seed % 40,
                      .at_once = at_once,
                      .only_woken = true,
                      .may_leave = true,
                      .within = together.data()};
      const std::vector<std::uint32_t> labels = local_moves(graph.rows(), rules);
      ASSERT_TRUE(are_connected(graph, labels)) << seed;
    }
  }
}

// A community that moves alone may join one with a higher number, so that those with low numbers do
// not swallow a path from its end.
TEST(Merge, PathsFallIntoManyCommunities) {
  std::vector<Edge> edges;
  for (std::uint64_t v = 1; v < 1000; ++v) edges.push_back({v - 1, v, 1});
  const AnyCsr directed = build_csr(edge_list<std::uint32_t>(1000, edges, false));
  const AnyCsr both_ways = build_csr(generate_path(1000));
  for (const bool symmetric : {false, true}) {
    const CommunityStatistics found =
        community_statistics(symmetric ? both_ways : directed, symmetric);
    // k equal pieces have a modularity of about 1 - 1 / k - k / 999: at most 0.938, for k = 32.
    EXPECT_GT(found.modularity, 0.93);
    EXPECT_NEAR(static_cast<double>(found.communities), 32, 8);
  }
}

}  // namespace
}  // namespace plait::test
