// Statistics of graphs, against counts that are made one by one and against shapes whose numbers
// are known.
#include "plait/graph/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plait/base/parallel.h"
#include "plait/graph/generate.h"
#include "tests/support/random_graph.h"

namespace plait::test {
namespace {

// Returns the statistics by sorting and counting.
DegreeStatistics plain(const Csr<std::uint32_t>& graph) {
  std::vector<EdgeOffset> degrees;
  for (std::uint64_t i = 0; i < graph.vertices(); ++i) degrees.push_back(graph.degree(i));
  std::ranges::sort(degrees);
  const std::size_t n = degrees.size();
  DegreeStatistics found;
  if (n == 0) return found;
  double sum = 0, of_top = 0;
  for (const EdgeOffset degree : degrees) sum += static_cast<double>(degree);
  found.mean = sum / static_cast<double>(n);
  found.median = degrees[(n - 1) / 2];
  for (std::size_t i = 0; i < n && found.percentile_99 == 0; ++i)
    if (100 * (i + 1) >= 99 * n) found.percentile_99 = degrees[i];
  found.largest = degrees[n - 1];
  found.without_edges = static_cast<std::uint64_t>(std::ranges::count(degrees, 0u));
  for (std::size_t i = 0; i < (n + 99) / 100; ++i)
    of_top += static_cast<double>(degrees[n - 1 - i]);
  found.top_percent_share = sum > 0 ? of_top / sum : 0;
  return found;
}

TEST(Statistics, AreThoseOfSortedDegrees) {
  for (const auto& [vertices, edges] : std::vector<std::pair<std::uint64_t, std::size_t>>{
           {0, 0}, {1, 0}, {1, 3}, {2, 1}, {99, 300}, {100, 1000}, {101, 50}, {20000, 90000}}) {
    const auto graph = random_csr<std::uint32_t>(vertices, edges, 7);
    EXPECT_EQ(degree_statistics(AnyCsr(graph)), plain(graph)) << vertices;
  }
}

TEST(Statistics, OfAStar) {
  std::vector<Edge> edges;
  for (std::uint64_t leaf = 1; leaf <= 100; ++leaf) edges.push_back({leaf, 0, 1});
  const AnyCsr star = build_csr(edge_list<std::uint64_t>(101, edges, false));
  const DegreeStatistics found = degree_statistics(star);
  EXPECT_EQ(found.largest, 100u);
  EXPECT_EQ(found.median, 0u);
  EXPECT_EQ(found.without_edges, 100u);
  EXPECT_EQ(found.top_percent_share, 1);
  EXPECT_EQ(averaged_edge_span(star), 50.5);
}

TEST(Statistics, EdgeSpanIsTheMeanDistance) {
  EXPECT_EQ(averaged_edge_span(random_csr<std::uint32_t>(5, 0, 1)), 0);
  for (const std::uint64_t vertices : {1u, 3u, 9000u, 20000u}) {
    const auto edges = random_edges(vertices, 30000, 5);
    double sum = 0;
    for (const Edge& e : edges)
      sum += std::abs(static_cast<double>(e.source) - static_cast<double>(e.target));
    const AnyCsr graph = build_csr(edge_list<std::uint32_t>(vertices, edges, false));
    EXPECT_DOUBLE_EQ(averaged_edge_span(graph), sum / 30000);
  }
}

TEST(Statistics, AreTheSameForAnyNumberOfThreads) {
  const AnyCsr graph = random_csr<std::uint32_t>(30000, 200000, 3);
  const ThreadCount one(1);
  const double alone = averaged_edge_span(graph);
  const ThreadCount four(4);
  EXPECT_EQ(averaged_edge_span(graph), alone);
}

// GNNAdvisor, section 5.1: sqrt(span) > floor(sqrt(vertices) / 100).
TEST(Statistics, ScatteredIdsAreThoseOfThePapersRule) {
  EXPECT_FALSE(is_above_span_bound(0, 100));
  EXPECT_TRUE(is_above_span_bound(1, 9999));    // 1 > floor(0.99)
  EXPECT_FALSE(is_above_span_bound(1, 10000));  // 1 > 1
  EXPECT_TRUE(is_above_span_bound(1.01, 10000));
  EXPECT_FALSE(is_above_span_bound(100, 1000000));  // 10 > 10
  EXPECT_TRUE(is_above_span_bound(101, 1000000));
}

}  // namespace
}  // namespace plait::test
