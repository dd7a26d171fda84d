// Pairs that are no edges: all of them are numbered, and every one is equally likely.
#include "plait/sample/non_edges.h"

#include <gtest/gtest.h>

#include <set>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/graph/build.h"
#include "tests/support/chi_square.h"
#include "tests/support/error_of.h"
#include "tests/support/sample_case.h"

namespace plait::test {
namespace {

using Pair = NonEdges::Pair;

// A graph whose rows are sorted, with parallel edges and loops; rows and columns of its pairs.
struct PairCase {
  AnyCsr graph;
  std::uint64_t rows, columns;
  PairKind kind;

  std::vector<Pair> pairs() const {
    std::set<std::pair<std::uint64_t, std::uint64_t>> edges;
    std::visit(
        [&](const auto& csr) {
          for (std::uint64_t row = 0; row < csr.vertices(); ++row)
            for (const auto column : csr.row(row)) edges.emplace(row, column);
        },
        graph);
    std::vector<Pair> pairs;
    for (std::uint64_t row = 0; row < rows; ++row)
      for (std::uint64_t column = 0; column < columns; ++column) {
        if (kind == PairKind::no_loops && row == column) continue;
        if (kind == PairKind::ascending && row >= column) continue;
        if (!edges.contains({row, column})) pairs.push_back({row, column});
      }
    return pairs;
  }
  NonEdges non_edges() const { return {graph, rows, columns, kind}; }
};

AnyCsr sorted(const Csr64& graph, bool wide) {
  const AnyCsr twice = transpose(transpose(graph));
  return wide ? twice : SampleGraph(std::get<Csr64>(twice)).with_ids_of(false);
}

std::vector<PairCase> cases() {
  std::vector<PairCase> cases;
  const std::vector<std::uint64_t> dense(6, 14);
  for (const bool wide : {false, true})
    for (const PairKind kind : {PairKind::all, PairKind::no_loops, PairKind::ascending}) {
      for (const SampleGraph& graph : sample_graphs())
        if (const std::uint64_t n = graph.graph.vertices(); n < 100)
          cases.push_back({sorted(graph.graph, wide), n, n, kind});
      cases.push_back({sorted(csr_of_degrees(dense, 2), wide), 6, 6, kind});
      cases.push_back({sorted(csr_of_degrees({40, 3, 40}, 2), wide), 3, 3, kind});  // full rows
      cases.push_back({Csr64{}, 0, 0, kind});
    }
  const Csr64 wide_pairs{
      std::vector<EdgeOffset>{0, 3, 3, 5, 5, 5, 5}, std::vector<std::uint64_t>{0, 5, 5, 1, 4}, {}};
  cases.push_back({wide_pairs, 3, 6, PairKind::all});
  return cases;
}

TEST(NonEdges, AreNumbered) {
  for (const PairCase& c : cases()) {
    const std::vector<Pair> pairs = c.pairs();
    const NonEdges non_edges = c.non_edges();
    ASSERT_EQ(non_edges.count(), pairs.size());
    for (std::uint64_t i = 0; i < pairs.size(); ++i) EXPECT_EQ(non_edges.pair(i), pairs[i]);
  }
}

TEST(NonEdges, DrawnOnesDifferOrRepeat) {
  for (const PairCase& c : cases()) {
    const NonEdges non_edges = c.non_edges();
    const std::uint64_t all = non_edges.count();
    for (const std::uint64_t wanted : {std::uint64_t{0}, std::uint64_t{1}, all / 2, all, 2 * all}) {
      std::set<std::pair<std::uint64_t, std::uint64_t>> found;
      const auto drawn = non_edges.draw(wanted, false, 3);
      for (const auto& [row, column] : drawn) found.emplace(row, column);
      EXPECT_EQ(found.size(), std::min(wanted, all));
      EXPECT_EQ(drawn.size(), found.size());
      EXPECT_EQ(non_edges.draw(wanted, true, 3).size(), all > 0 ? wanted : 0);
      for (const int threads : {1, 5}) {
        const ThreadCount count(threads);
        EXPECT_EQ(non_edges.draw(wanted, false, 3), drawn);
      }
    }
  }
}

// Sets of two, pairs with replacement, and the neighbours of a row.
TEST(NonEdges, AreEquallyLikely) {
  constexpr std::uint64_t kTrials = 20000;
  const PairCase c{sorted(csr_of_degrees({2, 6, 0, 3}, 4), true), 4, 4, PairKind::no_loops};
  const NonEdges non_edges = c.non_edges();
  const std::vector<Pair> pairs = c.pairs();
  ASSERT_GT(pairs.size(), 4u);
  const auto index = [&](const Pair& pair) {
    return static_cast<std::uint64_t>(std::ranges::find(pairs, pair) - pairs.begin());
  };
  Outcomes sets, orders, columns, singles, all_sets, all_orders, all_columns, all_singles;
  for (std::uint64_t key = 0; key < kTrials; ++key) {
    const auto two = non_edges.draw(2, false, key), any = non_edges.draw(2, true, key);
    sets.push_back({index(two[0]), index(two[1])});
    std::ranges::sort(sets.back());
    orders.push_back({index(any[0]), index(any[1])});
    columns.push_back({non_edges.draw_columns(std::vector<std::uint64_t>{2}, key)[0]});
  }
  for (const Pair& pair : non_edges.draw(kTrials, true, 1)) singles.push_back({index(pair)});
  for (std::uint64_t a = 0; a < pairs.size(); ++a) {
    for (std::uint64_t b = 0; b < pairs.size(); ++b) {
      all_orders.push_back({a, b});
      if (a < b) all_sets.push_back({a, b});
    }
    all_singles.push_back({a});
    if (pairs[a].row == 2) all_columns.push_back({pairs[a].column});
  }
  EXPECT_GT(likelihood(sets, equal_chances(all_sets)), kLeast);
  EXPECT_GT(likelihood(orders, equal_chances(all_orders)), kLeast);
  EXPECT_GT(likelihood(singles, equal_chances(all_singles)), kLeast);
  EXPECT_GT(likelihood(columns, equal_chances(all_columns)), kLeast);
  // One pair in ten that is drawn in the place of another is seen.
  for (std::size_t i = 0; i < singles.size(); i += 10)
    if (singles[i][0] == 0) singles[i][0] = 1;
  for (std::size_t i = 5; i < singles.size(); i += 10)
    if (singles[i][0] == 0) singles[i][0] = 1;
  EXPECT_LT(likelihood(singles, equal_chances(all_singles)), kLeast);
}

TEST(NonEdges, Refuses) {
  const Csr64 unsorted{std::vector<EdgeOffset>{0, 2, 2}, std::vector<std::uint64_t>{1, 0}, {}};
  EXPECT_EQ(error_of([&] { NonEdges(unsorted, 2, 2, PairKind::all); }),
            "row 0 of the edges is not sorted, or not within 2 x 2 pairs");
  const Csr64 full{std::vector<EdgeOffset>{0, 2, 2}, std::vector<std::uint64_t>{0, 1}, {}};
  EXPECT_EQ(error_of([&] { NonEdges(full, 2, 1, PairKind::all); }),
            "row 0 of the edges is not sorted, or not within 2 x 1 pairs");
  EXPECT_EQ(error_of([&] { NonEdges(full, 2, 1, PairKind::no_loops); }),
            "pairs of 2 x 1 vertices do not suit a graph with 2");
  EXPECT_EQ(error_of([&] { NonEdges(full, 3, 3, PairKind::all); }),
            "pairs of 3 x 3 vertices do not suit a graph with 2");
  const NonEdges non_edges(full, 2, 2, PairKind::all);
  EXPECT_EQ(error_of([&] {
              non_edges.draw_columns(std::vector<std::uint64_t>{1, 0}, 1);
            }),
            "vertex 0 has edges to all 2 vertices, so that no other pair of it can be drawn");
  EXPECT_EQ(error_of([&] { non_edges.draw_columns(std::vector<std::uint64_t>{2}, 1); }),
            "source 0 is 2, outside 0..1");
  EXPECT_THROW(non_edges.draw(std::uint64_t{1} << 60, true, 1), DoesNotFitError);
}

}  // namespace
}  // namespace plait::test
