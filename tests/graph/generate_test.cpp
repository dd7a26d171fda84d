// Generators against plain loops, known probabilities and pinned checksums.
#include "plait/graph/generate.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "plait/base/error.h"
#include "plait/graph/shapes.h"
#include "tests/support/edge_checksum.h"

namespace plait {
namespace {

using test::checksum;
using Edge = std::pair<std::uint64_t, std::uint64_t>;

std::vector<Edge> edges_of(const AnyEdgeList& any) {
  std::vector<Edge> edges;
  std::visit(
      [&](const auto& list) {
        for (std::size_t e = 0; e < list.edges(); ++e)
          edges.emplace_back(list.source[e], list.target[e]);
      },
      any);
  return edges;
}

std::uint64_t vertices_of(const AnyEdgeList& any) {
  return std::visit([](const auto& list) { return list.vertices; }, any);
}

// Checks that the edges, each once, are the pairs of a set that holds `expected` and its reverses.
void expect_undirected(const AnyEdgeList& any, std::uint64_t vertices, std::set<Edge> expected) {
  for (const Edge& edge : std::set<Edge>(expected)) expected.emplace(edge.second, edge.first);
  std::vector<Edge> edges = edges_of(any);
  std::ranges::sort(edges);
  EXPECT_EQ(vertices_of(any), vertices);
  EXPECT_EQ(edges, std::vector<Edge>(expected.begin(), expected.end()));
}

TEST(Generate, Grid) {
  for (const auto& [rows, columns] : std::vector<Edge>{{1, 1}, {1, 7}, {7, 1}, {2, 2}, {5, 9}}) {
    std::set<Edge> expected;
    for (std::uint64_t r = 0; r < rows; ++r)
      for (std::uint64_t c = 0; c < columns; ++c) {
        if (c > 0) expected.emplace(r * columns + c - 1, r * columns + c);
        if (r > 0) expected.emplace((r - 1) * columns + c, r * columns + c);
      }
    expect_undirected(generate_grid(rows, columns), rows * columns, expected);
  }
}

TEST(Generate, Star) {
  for (const std::uint64_t n : {1, 2, 3, 50000}) {
    std::set<Edge> expected;
    for (std::uint64_t leaf = 1; leaf < n; ++leaf) expected.emplace(0, leaf);
    expect_undirected(generate_star(n), n, expected);
  }
}

TEST(Generate, Ring) {
  for (const std::uint64_t n : {1, 2, 3, 4, 50000}) {
    std::set<Edge> expected;
    for (std::uint64_t v = 1; v < n; ++v) expected.emplace(v - 1, v);
    if (n > 2) expected.emplace(0, n - 1);
    expect_undirected(generate_ring(n), n, expected);
  }
}

TEST(Generate, RmatHasTheAskedSizeAndNoLoops) {
  for (const std::uint64_t n : {2, 3, 17, 1000, 1024, 1025}) {
    const AnyEdgeList list = generate_rmat({.vertices = n, .edges = 3000, .seed = n});
    EXPECT_EQ(vertices_of(list), n);
    EXPECT_EQ(edges_of(list).size(), 3000u);
    for (const auto& [source, target] : edges_of(list)) {
      ASSERT_NE(source, target);
      ASSERT_LT(std::max(source, target), n);
    }
  }
}

// The most frequent source is the one whose row is in the upper half at every level: a share of
// (a + b)^10 of all edges, a little less because loops are drawn again.
TEST(Generate, RmatHubsFollowTheProbabilities) {
  const auto largest_shares = [](double a, double b, double c) {
    const AnyEdgeList list = generate_rmat({1024, 400000, a, b, c, 5});
    std::vector<double> out(1024, 0), in(1024, 0);
    for (const auto& [source, target] : edges_of(list)) ++out[source], ++in[target];
    return std::pair(*std::ranges::max_element(out) / 400000,
                     *std::ranges::max_element(in) / 400000);
  };
  const auto [out, in] = largest_shares(0.57, 0.24, 0.14);
  const double loops = std::pow(0.62, 10);
  EXPECT_NEAR(std::max(out, in), std::pow(0.81, 10) * (1 - std::pow(0.57 / 0.81, 10)) / (1 - loops),
              0.002);
  EXPECT_NEAR(std::min(out, in), std::pow(0.71, 10) * (1 - std::pow(0.57 / 0.71, 10)) / (1 - loops),
              0.002);
  EXPECT_LT(largest_shares(0.25, 0.25, 0.25).first, 2.0 / 1024) << "uniform";
}

TEST(Generate, RmatWithWideIds) {
  const AnyEdgeList list = generate_rmat({.vertices = std::uint64_t{1} << 33, .edges = 1000});
  ASSERT_TRUE(std::holds_alternative<EdgeList<std::uint64_t>>(list));
  const auto edges = edges_of(list);
  EXPECT_TRUE(std::ranges::any_of(edges, [](const Edge& e) { return e.first >> 32 != 0; }));
  EXPECT_TRUE(std::ranges::none_of(edges, [](const Edge& e) { return e.first >> 33 != 0; }));
}

TEST(Generate, TheSameOnEveryMachineAndForAnyNumberOfThreads) {
  const int threads = omp_get_max_threads();
  for (const int count : {1, 2, 7}) {
    omp_set_num_threads(count);
    EXPECT_EQ(checksum(generate_rmat({.vertices = 50000, .edges = 200000, .seed = 1})),
              16929151669842532199u);
    EXPECT_EQ(checksum(generate_grid(200, 300)), 17174539448688178317u);
    EXPECT_EQ(checksum(generate_star(30000)), 4551437525835598517u);
    EXPECT_EQ(checksum(generate_ring(30000)), 10888043952780025509u);
  }
  omp_set_num_threads(threads);
  EXPECT_NE(checksum(generate_rmat({.vertices = 50000, .edges = 200000, .seed = 2})),
            16929151669842532199u);
}

TEST(Generate, RefusesWhatMakesNoSense) {
  EXPECT_THROW(generate_grid(0, 5), UsageError);
  EXPECT_THROW(generate_grid(std::uint64_t{1} << 40, std::uint64_t{1} << 40), UsageError);
  EXPECT_THROW(generate_star(0), UsageError);
  EXPECT_THROW(generate_ring(0), UsageError);
  EXPECT_THROW(generate_rmat({.vertices = 1, .edges = 1}), UsageError);
  EXPECT_THROW(generate_rmat({.vertices = 8, .edges = 1, .a = 0.9, .b = 0.2}), UsageError);
  EXPECT_THROW(generate_rmat({.vertices = 8, .edges = 1, .a = -0.1}), UsageError);
  EXPECT_THROW(generate_rmat({.vertices = 8, .edges = 1, .a = 1, .b = 0, .c = 0}), UsageError);
  EXPECT_THROW(generate_ring(std::uint64_t{1} << 45), DoesNotFitError);
}

TEST(Permutation, IsOneToOne) {
  for (const std::uint64_t size : {1, 2, 3, 4, 5, 63, 64, 65, 1000, 65536, 65537}) {
    std::vector<bool> hit(size, false);
    const Permutation permutation(size, 9, size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t image = permutation(i);
      ASSERT_LT(image, size);
      ASSERT_FALSE(hit[image]);
      hit[image] = true;
    }
  }
}

// Neighbours in order are as far apart as at random (a third of the size), few numbers stay, and
// images of the first half are spread evenly.
TEST(Permutation, Shuffles) {
  for (const std::uint64_t size : {4096, 50000}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Permutation permutation(size, seed, 3), other(size, seed, 4);
      double distance = 0;
      std::uint64_t fixed = 0, same = 0, low = 0;
      for (std::uint64_t i = 0; i < size; ++i) {
        const auto here = static_cast<double>(permutation(i));
        distance += std::abs(here - static_cast<double>(permutation((i + 1) % size)));
        fixed += permutation(i) == i;
        same += permutation(i) == other(i);
        low += i < size / 2 && permutation(i) < size / 2;
      }
      const auto n = static_cast<double>(size);
      EXPECT_NEAR(distance / n, n / 3, 0.05 * n) << size << " seed " << seed;
      EXPECT_NEAR(static_cast<double>(low), n / 4, 0.03 * n) << size << " seed " << seed;
      EXPECT_LT(fixed + same, 40u) << size << " seed " << seed;
    }
  }
}

}  // namespace
}  // namespace plait
