#include "plait/graph/build.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <map>
#include <optional>

#include "plait/base/error.h"
#include "plait/graph/validate.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

using test::Edge;
using Row = std::vector<std::pair<std::uint64_t, float>>;

// Builds the rows by sorting a list for each.
std::vector<Row> expected_rows(std::uint64_t vertices, std::vector<Edge> edges,
                               const BuildOptions& options) {
  std::vector<Row> rows(vertices);
  const std::size_t given = edges.size();
  if (options.undirected)
    for (std::size_t e = 0; e < given; ++e)
      if (edges[e].source != edges[e].target)
        edges.push_back({edges[e].target, edges[e].source, edges[e].weight});
  for (const Edge& e : edges)
    if (!(options.drop_loops && e.source == e.target))
      rows[e.target].push_back({e.source, e.weight});
  for (Row& row : rows) {
    std::stable_sort(row.begin(), row.end(), [](auto& a, auto& b) { return a.first < b.first; });
    if (options.drop_duplicates || options.undirected)
      row.erase(
          std::unique(row.begin(), row.end(), [](auto& a, auto& b) { return a.first == b.first; }),
          row.end());
  }
  return rows;
}

template <VertexId V>
std::vector<Row> rows_of(const Csr<V>& graph) {
  std::vector<Row> rows(graph.vertices());
  for (std::uint64_t i = 0; i < graph.vertices(); ++i)
    for (EdgeOffset e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e)
      rows[i].push_back({graph.neighbours[e], graph.weight(e)});
  return rows;
}

TEST(BuildCsr, EqualsSortedListsForEveryOption) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::uint64_t vertices = 1 + seed % 40;
    auto edges = test::random_edges(vertices, seed * 7 % 300, seed);
    const bool weighted = seed % 2 == 0;
    if (!weighted)
      for (Edge& e : edges) e.weight = 1;
    const BuildOptions options{(seed & 4) != 0, (seed & 8) != 0, (seed & 16) != 0};
    const auto expected = expected_rows(vertices, edges, options);
    EXPECT_EQ(
        rows_of(build_csr(test::edge_list<std::uint32_t>(vertices, edges, weighted), options)),
        expected)
        << seed;
    EXPECT_EQ(
        rows_of(build_csr(test::edge_list<std::uint64_t>(vertices, edges, weighted), options)),
        expected)
        << seed;
  }
}

TEST(BuildCsr, LargeEnoughForSeveralChunks) {
  const auto edges = test::random_edges(5000, 600000, 3);
  EXPECT_EQ(rows_of(build_csr(test::edge_list<std::uint32_t>(5000, edges, true))),
            expected_rows(5000, edges, {}));
}

TEST(BuildCsr, RefusesWhatDoesNotFit) {
  EdgeList<std::uint64_t> list;
  list.vertices = std::uint64_t{1} << 50;
  EXPECT_THROW(build_csr(std::move(list)), DoesNotFitError);
}

TEST(Transpose, TurnsEveryEdgeRound) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const auto graph = test::random_csr<std::uint32_t>(1 + seed, seed * 9, seed, true);
    std::multimap<std::tuple<std::uint64_t, std::uint64_t, float>, int> forward, back;
    const auto rows = rows_of(graph), turned = rows_of(transpose(graph));
    for (std::uint64_t i = 0; i < graph.vertices(); ++i) {
      for (const auto& [j, w] : rows[i]) forward.insert({{i, j, w}, 0});
      for (const auto& [j, w] : turned[i]) back.insert({{j, i, w}, 0});
    }
    EXPECT_EQ(forward, back);
  }
}

TEST(IsSymmetric, CountsParallelEdgesAndWeights) {
  const auto symmetric = [](const std::vector<Edge>& edges, bool weighted) {
    return is_symmetric(build_csr(test::edge_list<std::uint32_t>(4, edges, weighted)));
  };
  EXPECT_TRUE(symmetric({}, false));
  EXPECT_TRUE(symmetric({{0, 1, 1}, {1, 0, 1}, {2, 2, 1}}, false));
  EXPECT_FALSE(symmetric({{0, 1, 1}}, false));
  EXPECT_FALSE(symmetric({{0, 1, 1}, {0, 1, 1}, {1, 0, 1}}, false));
  EXPECT_TRUE(symmetric({{0, 1, 2}, {1, 0, 2}}, true));
  EXPECT_FALSE(symmetric({{0, 1, 2}, {1, 0, 3}}, true));
  EXPECT_FALSE(symmetric({{3, 0, 1}}, false));  // nothing stands in the other row
  EXPECT_FALSE(symmetric({{0, 1, 1}, {1, 2, 1}, {2, 0, 1}}, false));
}

// Returns the first entry, by rows, that stands more often than its reverse; nothing if there is
// none.
std::optional<std::pair<std::uint64_t, std::uint64_t>> first_one_way(const Csr32& graph) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> surplus;
  for (std::uint64_t i = 0; i < graph.vertices(); ++i)
    for (const auto j : graph.row(i)) ++surplus[{i, j}], --surplus[{j, i}];
  for (const auto& [edge, count] : surplus)
    if (count > 0) return edge;
  return std::nullopt;
}

TEST(IsSymmetric, RandomGraphsOnAnyNumberOfThreads) {
  const int threads = omp_get_max_threads();
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::vector<Edge> edges = test::random_edges(1 + seed, 3 * seed, seed);
    for (std::size_t e = 0, given = edges.size(); e < given; ++e)
      edges.push_back({edges[e].target, edges[e].source, 1});
    // Two in three graphs lack an edge, or have one too many.
    if (seed % 3 == 1 && !edges.empty()) edges.erase(edges.begin() + seed % 7);
    if (seed % 3 == 2) edges.push_back({seed, seed / 2, 1});
    const Csr32 graph = build_csr(test::edge_list<std::uint32_t>(1 + seed, edges, false));
    const auto expected = first_one_way(graph);
    for (const int count : {1, 2, 3, 8}) {
      omp_set_num_threads(count);
      EXPECT_EQ(is_symmetric(graph), !expected) << seed;
      const auto found = find_one_way_edge(graph);
      ASSERT_EQ(found.has_value(), expected.has_value()) << seed;
      if (!found) continue;
      EXPECT_EQ(std::pair(found->row, found->neighbour), *expected) << seed;
    }
  }
  omp_set_num_threads(threads);
}

TEST(IsSymmetric, TellsWeightsAndParallelEdgesApart) {
  const auto symmetric = [](std::vector<std::uint64_t> neighbours, std::vector<float> weights) {
    const std::uint64_t half = neighbours.size() / 2;
    return is_symmetric(Csr64{std::vector<EdgeOffset>{0, half, 2 * half}, std::move(neighbours),
                              std::move(weights)});
  };
  EXPECT_TRUE(symmetric({1, 1, 0, 0}, {2, 3, 2, 3}));
  EXPECT_FALSE(symmetric({1, 1, 0, 0}, {2, 3, 3, 2}));
  EXPECT_FALSE(symmetric({1, 1, 0, 0}, {2, 2, 2, 3}));
  EXPECT_TRUE(symmetric({0, 1, 0, 1}, {5, 0.0f, -0.0f, 7}));
  EXPECT_FALSE(symmetric({0, 1, 1, 1}, {}));
}

// Offsets are right, and so are neighbours, one by one; but code that trusts their order would read
// far outside the arrays.
TEST(IsSymmetric, MayBeAskedOfRowsThatAreNotSorted) {
  constexpr std::uint64_t kVertices = 100000;
  Buffer<EdgeOffset> offsets(kVertices + 1);
  Buffer<std::uint32_t> neighbours(2 * kVertices);
  for (std::uint64_t i = 0; i <= kVertices; ++i) offsets[i] = 2 * i;
  for (std::uint64_t i = 0; i < kVertices; ++i) {
    neighbours[2 * i] = kVertices - 1;
    neighbours[2 * i + 1] = static_cast<std::uint32_t>(i % 3);
  }
  const Csr32 graph{std::move(offsets), std::move(neighbours), {}};
  const int threads = omp_get_max_threads();
  for (const int count : {1, 2, 3, 8}) {
    omp_set_num_threads(count);
    EXPECT_FALSE(is_symmetric(graph));
    EXPECT_FALSE(rows_are_sorted(graph));
  }
  omp_set_num_threads(threads);
}

// A dataset that passes, which each case then breaks in one place.
Dataset good() {
  Dataset d;
  d.name = "small";
  d.graph = build_csr(test::edge_list<std::uint32_t>(3, {{0, 1, 1}, {1, 2, 1}}, true));
  d.features = {.rows = 3, .width = 2, .f32 = std::vector<float>(6, 1.0f)};
  d.labels = std::vector<std::int32_t>{0, 1, -1};
  d.classes = 2;
  d.splits = std::vector<Split>{Split::train, Split::test, Split::none};
  d.split_count = 1;
  return d;
}

std::string complaint(const Dataset& d) {
  try {
    validate(d, "file");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Validate, NamesPlaceValueAndRange) {
  EXPECT_EQ(complaint(good()), "");
  Dataset d = good();
  d.labels = std::vector<std::int32_t>{0, 2, -1};
  EXPECT_EQ(complaint(d),
            "file: label of vertex 1: value 2 is outside -1..1; use -1 for an unknown label and "
            "0.. for classes");
  d = good();
  d.features.f32 = std::vector<float>{1, 1, 1, std::nanf(""), 1, 1};
  EXPECT_NE(complaint(d).find("features, entry 3: value nan"), std::string::npos);
  d = good();
  std::get<Csr32>(d.graph).neighbours = std::vector<std::uint32_t>{0, 3};
  EXPECT_NE(complaint(d).find("neighbour list, entry 1: id 3 is outside 0..2"), std::string::npos);
  d = good();
  d.graph = Csr32{std::vector<EdgeOffset>{0, 1, 3, 3}, std::vector<std::uint32_t>{2, 1, 0}, {}};
  EXPECT_NE(complaint(d).find("neighbour list, entry 2: id 0 follows 1 in a row"),
            std::string::npos);
  d = good();
  std::get<Csr32>(d.graph).offsets = std::vector<EdgeOffset>{0, 2, 1, 2};
  EXPECT_NE(complaint(d).find("entry 2: value 1 is less than the one before, 2"),
            std::string::npos);
  d = good();
  std::get<Csr32>(d.graph).weights = std::vector<float>{1, INFINITY};
  EXPECT_NE(complaint(d).find("edge weights, entry 1"), std::string::npos);
  d = good();
  d.splits = std::vector<Split>{Split::train};
  EXPECT_NE(complaint(d).find("splits"), std::string::npos);
  d = good();
  d.graph = Csr32{};
  EXPECT_NE(complaint(d).find("no vertices"), std::string::npos);
}

}  // namespace
}  // namespace plait
