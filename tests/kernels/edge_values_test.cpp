// Values of edges against their reference and against values known by hand.
#include "plait/kernels/edge_values.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <limits>

#include "plait/base/error.h"
#include "plait/kernels/edge_term.h"
#include "tests/support/edge_values_case.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

using test::EdgeOperationKind;
using test::EdgeValuesCase;
using test::random_both_ways;
using test::star_both_ways;

std::vector<float> softmax_of(const EdgeSoftmax& args, std::size_t size) {
  std::vector<float> p(size, -7);
  edge_softmax(args, p.data());
  return p;
}

void expect_matches_reference(const EdgeValuesCase& c) {
  compare_edge_values(
      c,
      [&](EdgeOperationKind kind, const EdgeValues& args) {
        return run_edge_operation(c, kind, args, false);
      },
      [&](const EdgeSoftmax& args) { return softmax_of(args, c.z.size()); },
      [&](const std::string& what) { ADD_FAILURE() << what; });
}

TEST(EdgeValues, AllShapesMatchTheReference) {
  const test::BothWays graph = random_both_ways(40, 300, 2);
  for (const std::uint64_t heads : {1, 2, 3, 9})
    for (const std::uint64_t features : {1, 2, 3, 4, 5, 7, 8, 9, 16, 31})
      expect_matches_reference({graph.graph, heads, features});
}

TEST(EdgeValues, OddGraphs) {
  for (const auto& [vertices, edges] : {std::pair{0, 0}, {50, 0}, {1, 1}, {3, 500}, {700, 50}}) {
    const test::BothWays graph = random_both_ways(vertices, edges, 1);
    expect_matches_reference({graph.graph, 2, 5});
  }
  for (const std::uint64_t vertices : {4096, 4097, 10001})  // rows of several pieces
    for (const bool inwards : {false, true}) {
      const test::BothWays star = star_both_ways(vertices, inwards);
      expect_matches_reference({star.graph, 2, 5});
    }
}

// Vertex 0 reads 1 by edge 1 and 2 by edge 0.
TEST(EdgeValues, ByHand) {
  const test::BothWays graph(3, {{1, 0, 1}, {2, 0, 1}});
  EdgeValuesCase c(graph.graph, 1, 2);
  c.place = {1, 0};
  c.a = {1, -1, 0, 0, 0, 0};
  c.b = {0, 0, 2, 3, -4, 0.5f};
  c.m = {1, 1, 0, -2};
  c.factor = {10, 100};
  c.weights = {3, 5};
  c.z = {2, 2};
  const auto run = [&](EdgeOperationKind kind, EdgeTerm term, bool with_m, bool with_weights) {
    const EdgeValues args = c.values(term, with_m, with_weights);
    const std::vector<float> found = run_edge_operation(c, kind, args, false);
    EXPECT_EQ(found, run_edge_operation(c, kind, args, true));
    return found;
  };
  using Values = std::vector<float>;
  EXPECT_EQ(run(EdgeOperationKind::scores, EdgeTerm::product, true, false), (Values{-4.5f, 1}));
  EXPECT_EQ(run(EdgeOperationKind::scores, EdgeTerm::leaky, false, false), (Values{-16, 230}));
  EXPECT_EQ(run(EdgeOperationKind::sums, EdgeTerm::plus, false, true),
            (Values{-2, 16.5f, 0, 0, 0, 0}));
  EXPECT_EQ(run(EdgeOperationKind::sums, EdgeTerm::relu, true, false),
            (Values{2, 2.5f, 0, 0, 0, 0}));
  EXPECT_EQ(run(EdgeOperationKind::sums, EdgeTerm::gate, false, false),
            (Values{-2, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run(EdgeOperationKind::rows, EdgeTerm::own, false, true), (Values{3, -3, 5, -5}));
  EXPECT_EQ(softmax_of(c.softmax(false), 2), (Values{0.5f, 0.5f}));
}

TEST(EdgeValues, ValuesThatAreNotNumbersStay) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const test::BothWays graph(2, {{1, 0, 1}});
  EdgeValuesCase c(graph.graph, 1, 9);
  c.b.assign(18, nan);
  for (const auto& [kind, term] : test::kEdgeOperationTerms) {
    if (term == EdgeTerm::slope || !reads_b(term)) continue;  // they do not return b
    std::fill(c.a.begin(), c.a.end(), 1.0f);
    const auto found = run_edge_operation(c, kind, c.values(term, true, true), false);
    std::fill(c.m.begin(), c.m.end(), 1.0f);
    EXPECT_TRUE(std::isnan(found[0])) << static_cast<int>(term);
  }
}

TEST(EdgeValues, BitsDoNotDependOnThreads) {
  const test::BothWays graph = random_both_ways(200, 30000, 3);
  const EdgeValuesCase c(graph.graph, 2, 13);
  const int before = omp_get_max_threads();
  for (const auto& [kind, term] : test::kEdgeOperationTerms) {
    omp_set_num_threads(1);
    const auto expected = run_edge_operation(c, kind, c.values(term, true, true), false);
    omp_set_num_threads(3);
    EXPECT_EQ(run_edge_operation(c, kind, c.values(term, true, true), false), expected);
  }
  omp_set_num_threads(before);
}

TEST(EdgeValues, TermsOfOtherOperationsAreRefused) {
  const test::BothWays graph = random_both_ways(4, 9, 1);
  const EdgeValuesCase c(graph.graph, 1, 2);
  std::vector<float> out(100);
  EXPECT_THROW(edge_scores(c.values(EdgeTerm::relu, false, false), out.data()), UsageError);
  EXPECT_THROW(edge_sums(c.values(EdgeTerm::own, false, false), out.data()), UsageError);
  EXPECT_THROW(edge_rows(c.values(EdgeTerm::plus, false, false), out.data()), UsageError);
}

}  // namespace
}  // namespace plait
