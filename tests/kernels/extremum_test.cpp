// The extremum against its reference and against values known by hand: equal, not close.
#include "plait/kernels/extremum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "tests/support/extremum_case.h"

namespace plait {
namespace {

using test::ExtremumCase;
using test::random_both_ways;
using test::same_values;
using test::star_both_ways;

void expect_one_matches_reference(const ExtremumCase& c) {
  SCOPED_TRACE(testing::Message() << c.vertices << " vertices, width " << c.width);
  std::vector<float> y, ties, expected_y, expected_ties, dx, expected_dx;
  apply_reference(c.forward(expected_y, expected_ties));
  apply(c.forward(y, ties));
  EXPECT_TRUE(same_values(y, expected_y));
  EXPECT_EQ(ties, expected_ties);
  ExtremumForward untied = c.forward(y, ties);
  untied.ties = nullptr;
  apply(untied);
  EXPECT_TRUE(same_values(y, expected_y));

  const std::vector<float> rows = c.backward_rows(expected_y, 5), own = c.own_rows();
  apply_reference(c.backward(rows, own, expected_dx));
  apply(c.backward(rows, own, dx));
  EXPECT_EQ(dx, expected_dx);
}

void expect_matches_reference(const ExtremumCase& c) {
  for (const Extremum which : {Extremum::greatest, Extremum::least})
    expect_one_matches_reference(c.of(which));
}

// Vertex 0 reads 1, 2 and 3, of which two reach 5, and the third -1; vertex 1 reads itself.
TEST(Extremum, ByHand) {
  const auto check = [](auto&& run) {
    ExtremumCase c(test::BothWays(4, {{1, 0, 1}, {2, 0, 1}, {3, 0, 1}, {1, 1, 1}}), 1);
    c.x = {9, 5, -1, 5};
    std::vector<float> y, ties, dx;
    run(c.of(Extremum::least).forward(y, ties));
    EXPECT_EQ(y, (std::vector<float>{-1, 5, 0, 0}));
    EXPECT_EQ(ties, (std::vector<float>{1, 1, 0, 0}));
    run(c.forward(y, ties));
    EXPECT_EQ(y, (std::vector<float>{5, 5, 0, 0}));
    EXPECT_EQ(ties, (std::vector<float>{2, 1, 0, 0}));
    const std::vector<float> rows{5, 3, 5, 10, 0, 100, 0, 100};  // [y | dy / ties]
    run(c.backward(rows, c.x, dx));
    EXPECT_EQ(dx, (std::vector<float>{0, 13, 0, 3}));
  };
  check([](const auto& args) { apply_reference(args); });
  check([](const auto& args) { apply(args); });
}

TEST(Extremum, AllWidthsMatchTheReference) {
  const test::BothWays graph = random_both_ways(40, 300, 2);
  for (std::uint64_t width = 1; width <= 70; ++width) {
    expect_matches_reference({graph, width});
    expect_matches_reference({graph, width, width % 7, /*odd_values=*/true});
  }
}

TEST(Extremum, OddGraphs) {
  for (const bool odd_values : {false, true}) {
    expect_matches_reference({random_both_ways(0, 0, 1), 5, 0, odd_values});
    expect_matches_reference({random_both_ways(50, 0, 1), 5, 0, odd_values});
    expect_matches_reference({random_both_ways(1, 1, 1), 5, 0, odd_values});
    expect_matches_reference({random_both_ways(3, 500, 1), 5, 0, odd_values});
    expect_matches_reference({random_both_ways(700, 50, 1), 5, 0, odd_values});
    for (const std::uint64_t vertices : {4096, 4097, 10001})
      for (const bool inwards : {false, true})
        expect_matches_reference({star_both_ways(vertices, inwards), 13, 0, odd_values});
  }
  std::vector<float> y, ties;
  apply(ExtremumCase(random_both_ways(4, 9, 1), 0).forward(y, ties));
}

TEST(Extremum, NanWinsAndOnlyItIsReached) {
  ExtremumCase c(test::BothWays(4, {{1, 0, 1}, {2, 0, 1}, {3, 0, 1}}), 1);
  c.x = {1, NAN, INFINITY, NAN};
  std::vector<float> y, ties, dx;
  apply(c.forward(y, ties));
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(ties[0], 2);
  apply(c.backward({NAN, 1, 0, 0, 0, 0, 0, 0}, c.x, dx));
  EXPECT_EQ(dx, (std::vector<float>{0, 1, 0, 1}));
}

// The parts of all that reach a maximum add up to the whole again.
TEST(Extremum, GradientsAreSharedOut) {
  const ExtremumCase c(random_both_ways(50, 2000, 6), 9);
  std::vector<float> y, ties, dx;
  apply(c.forward(y, ties));
  std::vector<float> rows = c.backward_rows(y);
  double given = 0, taken = 0;
  for (std::uint64_t i = 0; i < c.vertices; ++i)
    for (std::uint64_t j = 0; j < c.width; ++j) {
      float& dy = rows[(2 * i + 1) * row_stride(c.width) + j];
      given += double{dy};
      dy /= ties[i * c.width + j];
    }
  apply(c.backward(rows, c.x, dx));
  for (const float value : dx) taken += double{value};
  EXPECT_NEAR(given, taken, 1e-4);
}

TEST(Extremum, SameBitsForAnyThreadCount) {
  std::vector<test::Edge> edges = test::random_edges(3000, 40000, 1);
  for (std::uint64_t v = 0; v < 20000; ++v) {
    edges.push_back({v % 3000, 5, 1});
    edges.push_back({7, v * 7 % 3000, 1});
  }
  const ExtremumCase c(test::BothWays(3000, edges), 17);
  std::vector<float> y, ties;
  apply(c.forward(y, ties));
  std::vector<float> rows = c.backward_rows(y);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] *= i / 17 % 2 == 1 ? 0.1f : 1.0f;
  const auto run = [&](int threads) {
    omp_set_num_threads(threads);
    std::vector<float> dx;
    apply(c.forward(y, ties));
    apply(c.backward(rows, c.x, dx));
    return std::vector{y, ties, dx};
  };
  const int before = omp_get_max_threads();
  const auto expected = run(1);
  for (const int threads : {2, 3, 5}) EXPECT_EQ(run(threads), expected) << threads;
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace plait
