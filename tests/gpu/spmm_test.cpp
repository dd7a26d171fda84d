// The GPU's SpMM against the reference. Values are small multiples of 1/8, so that sums are exact
// in fp32 in any order: results are equal, not close.
#include "plait/kernels/spmm.h"

#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/base/row_stride.h"
#include "plait/communities/cuda/clusters.cuh"
#include "plait/graph/generate.h"
#include "plait/graph/shapes.h"
#include "plait/graph/zoo.h"
#include "plait/kernels/cuda/spmm.cuh"
#include "plait/kernels/row_cut.h"
#include "plait/reorder/cuda/work_order.cuh"
#include "tests/gpu/device_matrix.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

using test::DeviceCsr;

struct Case {
  std::uint64_t width = 16;
  DType x = DType::f32, y = DType::f32;
  bool weighted = false, scaled = false, accumulate = false;
  std::uint32_t most = 2048, slice_bytes = 0;
  std::uint64_t padding = 0;  // elements after each row of x and y
  bool clusters = false;
  bool slots = false;        // x is padded as rows in slots are instead
  std::uint64_t before = 0;  // elements before the first row of y
  NarrowCut narrow = NarrowCut::automatic;
  bool fixed_order = false;
  bool whole = true;  // rows of a small matrix are not cut, if none is long

  std::uint64_t x_stride() const { return slots ? row_stride(width, x) : width + padding; }
  std::uint64_t y_stride() const { return width + padding; }
  bool is_padding(std::uint64_t i) const {  // of y
    return i < before || (i - before) % y_stride() >= width;
  }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << fmt::format(
             "width {} x {} y {} weighted {} scaled {} accumulate {} most {} slice {} padding {} "
             "slots "
             "{} before {} narrow {} whole {}",
             c.width, to_string(c.x), to_string(c.y), c.weighted, c.scaled, c.accumulate, c.most,
             c.slice_bytes, c.padding, c.slots, c.before, static_cast<int>(c.narrow), c.whole);
}

std::vector<float> expected(const Csr32& graph, const Case& c, const std::vector<float>& x,
                            const std::vector<float>& before, const std::vector<float>& scale) {
  std::vector<float> y(before.size(), -7);
  spmm_reference({.begin = graph.offsets.span().first(graph.vertices()),
                  .end = graph.offsets.span().subspan(1),
                  .columns = graph.neighbours.data(),
                  .weights = c.weighted ? graph.weights.data() : nullptr,
                  .x = {.base = x.data(), .stride = c.x_stride()},
                  .width = c.width,
                  .y = y.data() + c.before,
                  .y_stride = c.y_stride(),
                  .row_scale = c.scaled ? scale.data() : nullptr});
  for (std::size_t i = 0; i < y.size(); ++i)
    if (c.is_padding(i))
      y[i] = before[i];  // not written
    else if (c.accumulate)
      y[i] += before[i];
  return test::read_as(c.y, test::stored_as(c.y, y));
}

std::vector<float> on_gpu(const Csr32& graph, const Case& c, const std::vector<float>& x,
                          const std::vector<float>& before, const std::vector<float>& scale) {
  const DeviceCsr matrix(graph);
  DeviceArray<std::uint32_t> clusters;
  if (c.clusters)
    clusters = find_clusters(matrix.begin(), matrix.end(), matrix.columns.data(), matrix.rows,
                             kClusterRounds, nullptr);
  const RowGroups groups(matrix.begin(), matrix.end(), matrix.rows,
                         {.most = c.most, .clusters = clusters.data(), .whole = c.whole}, nullptr);
  const DeviceArray<std::byte> x_there(test::stored_as(c.x, x));
  DeviceArray<std::byte> y_there(test::stored_as(c.y, before));
  const DeviceArray<float> scale_there(scale);
  DeviceArray<float> partial_sums(spmm_scratch(groups, c.width));
  spmm({.groups = &groups,
        .columns = matrix.columns.data(),
        .weights = c.weighted ? matrix.weights.data() : nullptr,
        .x = {x_there.data(), c.x, c.x_stride()},
        .x_rows = matrix.rows,
        .width = c.width,
        .y = {y_there.data() + c.before * size_of(c.y), c.y, c.y_stride()},
        .row_scale = c.scaled ? scale_there.data() : nullptr,
        .accumulate = c.accumulate,
        .partial_sums = partial_sums.data(),
        .slice_bytes = c.slice_bytes,
        .fixed_order = c.fixed_order,
        .narrow = c.narrow},
       nullptr);
  return test::read_as(c.y, y_there.to_host());
}

void check(const Csr32& graph, const Case& c, unsigned seed = 1) {
  if (c.width <= kEvenWidth && c.narrow == NarrowCut::automatic) {
    Case by_groups = c;
    by_groups.narrow = NarrowCut::groups;
    check(graph, by_groups, seed);
  }
  if (c.whole && c.most < 2048) {
    Case cut = c;
    cut.whole = false;
    check(graph, cut, seed);
  }
  const auto x = test::exact_values(graph.vertices() * c.x_stride(), seed);
  const auto before = test::exact_values(c.before + graph.vertices() * c.y_stride(), seed + 1);
  const auto scale = test::exact_values(graph.vertices(), seed + 2);
  EXPECT_EQ(on_gpu(graph, c, x, before, scale), expected(graph, c, x, before, scale)) << c;
}

// Rows have 3, 20 and 90 edges: groups that share a warp, groups of either kind, and groups with a
// warp each.
const std::vector<Csr32>& random_graphs() {
  static const std::vector<Csr32> graphs{test::random_csr<std::uint32_t>(700, 2100, 2, true),
                                         test::random_csr<std::uint32_t>(300, 6000, 3, true),
                                         test::random_csr<std::uint32_t>(100, 9000, 4, true)};
  return graphs;
}
void check_all(const Case& c) {
  for (const Csr32& graph : random_graphs()) check(graph, c);
}

TEST(SpmmCuda, AllWidthsAndTypes) {
  for (const std::uint64_t width :
       {1, 2, 3, 4, 7, 8, 15, 16, 20, 31, 32, 33, 64, 100, 128, 129, 256, 602, 1000, 1024})
    for (const DType x : {DType::f32, DType::bf16, DType::f16})
      for (const DType y : {DType::f32, x})
        for (const bool weighted : {false, true})
          check_all({.width = width, .x = x, .y = y, .weighted = weighted});
}

// As aggregation has them, x is padded and y has no gaps, so that its rows begin at any float.
TEST(SpmmCuda, AllWidthsOfRowsInSlots) {
  for (std::uint64_t width = 1; width <= 130; ++width)
    for (const DType x : {DType::f32, DType::bf16})
      for (int bits = 0; bits < 4; ++bits)
        check_all({.width = width,
                   .x = x,
                   .weighted = width % 2 == 0,
                   .scaled = (bits & 1) != 0,
                   .accumulate = (bits & 2) != 0,
                   .most = width % 3 == 0 ? 32u : 2048u,
                   .slots = true,
                   .before = width / 4 % 4});
  for (const std::uint32_t slice : {16u, 32u, 64u, 512u})
    for (const std::uint64_t width : {63, 127, 129, 260})
      for (std::uint64_t before = 0; before < 4; ++before)
        check_all({.width = width, .slice_bytes = slice, .slots = true, .before = before});
}

TEST(SpmmCuda, ScaledAccumulatedPaddedSlicedAndCut) {
  for (const std::uint64_t width : {1, 6, 16, 37, 64, 160})
    for (const DType x : {DType::f32, DType::bf16})
      for (int bits = 0; bits < 32; ++bits) {
        const auto bit = [&](int k) { return (bits >> k & 1) != 0; };
        check_all({.width = width,
                   .x = x,
                   .weighted = bit(0),
                   .scaled = bit(1),
                   .accumulate = bit(2),
                   .most = bit(3) ? 32u : 2048u,
                   .padding = bit(4) ? 16 - width % 8 : 0,
                   .clusters = bit(4)});
      }
  for (const std::uint32_t slice : {16u, 32u, 64u, 128u, 256u, 512u})
    for (const std::uint64_t width : {4, 40, 128, 260})
      check_all({.width = width, .most = 64, .slice_bytes = slice});
}

TEST(SpmmCuda, OddGraphs) {
  const auto csr = [](AnyEdgeList edges) { return std::get<Csr32>(build_csr(std::move(edges))); };
  const Csr32 star = csr(generate_star(5000));
  for (const std::uint32_t most : {32u, 2048u})
    for (const std::uint64_t width : {1, 16, 70}) check(star, {.width = width, .most = most});
  check(test::random_csr<std::uint32_t>(1, 0, 1), {.width = 5});
  check(test::random_csr<std::uint32_t>(1, 40, 1, true), {.width = 5, .weighted = true});
  check(test::random_csr<std::uint32_t>(700, 50, 2), {.width = 24});  // most rows are empty
  check(test::random_csr<std::uint32_t>(0, 0, 1), {.width = 8});
  check_all({.width = 0});
}

// A graph with so many edges that short groups have up to kShortInLarge, beside those of a hub of
// 100,000 edges, whose partial sums are added by a tree.
TEST(SpmmCuda, ShortGroupsOfALargeGraphBesideAHub) {
  constexpr std::uint64_t kVertices = 130'000;
  auto edges = test::random_edges(kVertices, 12 * kVertices, 7);
  for (std::size_t e = 0; e < 100'000; ++e) edges[e].target = 3;
  const Csr32 graph = build_csr(test::edge_list<std::uint32_t>(kVertices, edges, true));
  ASSERT_EQ(short_group(graph.edges()), kShortInLarge);
  for (const std::uint64_t width : {1, 2, 5, 16, 33, 64, 100})
    for (const bool clusters : {false, true})
      check(graph, {.width = width,
                    .weighted = width % 2 == 1,
                    .most = 64,
                    .clusters = clusters,
                    .slots = true,
                    .before = width % 4});
}

// Rows of every kind side by side: a hub over many tiles, empty rows that fill tiles of their own,
// rows of one edge, rows that end where a tile does.
TEST(SpmmCuda, NarrowSumsByTiles) {
  std::mt19937 random(11);
  for (const std::uint64_t vertices : {1, 3, 1791, 1792, 1793, 5000, 40'000})
    for (const std::uint64_t kind : {0, 1, 2, 3}) {
      auto edges = test::random_edges(vertices, kind == 3 ? 0 : 2 * vertices, 5 + kind);
      const std::uint64_t kept = kind == 1 ? vertices / 8 + 1 : vertices;  // rows with edges
      for (auto& edge : edges) edge.target %= kept;
      if (kind == 2)
        for (std::uint64_t e = 0; e < 12 * vertices; ++e)
          edges.push_back({random() % vertices, vertices / 2 + (e % 16 == 0 && vertices > 2), 1});
      for (std::size_t e = 0; e < edges.size(); ++e)
        edges[e].weight = static_cast<float>(1 + e % 7) / 4;
      const Csr32 graph = build_csr(test::edge_list<std::uint32_t>(vertices, edges, true));
      for (std::uint64_t width = 1; width <= kEvenWidth; ++width)
        for (const DType x : {DType::f32, DType::bf16, DType::f16})
          for (int bits = 0; bits < 8; ++bits)
            check(graph, {.width = width,
                          .x = x,
                          .y = bits % 2 == 0 ? DType::f32 : x,
                          .weighted = (bits & 2) != 0,
                          .scaled = (bits & 4) != 0,
                          .accumulate = (bits & 2) != 0,
                          .padding = bits % 3 == 0   ? 0u
                                     : bits % 3 == 1 ? 1u
                                                     : 8 - width,
                          .slots = bits == 5,
                          .before = static_cast<std::uint64_t>(bits) % 4,
                          .narrow = NarrowCut::tiles});
    }
}

// Rows of a small matrix are not cut if none has more than 256 edges.
TEST(SpmmCuda, SumsOfASmallMatrixCutNoRow) {
  const auto clique = [](std::uint64_t vertices) {
    return std::get<Csr32>(build_csr(generate_cliques(vertices, vertices)));
  };
  for (const std::uint64_t vertices : {66, 200, 257, 258}) {
    const Csr32 graph = clique(vertices);
    const DeviceCsr matrix(graph);
    const RowGroups groups(matrix.begin(), matrix.end(), matrix.rows, {.most = 64, .whole = true},
                           nullptr);
    EXPECT_GT(groups.cut_size(), 0u);
    ASSERT_EQ(groups.whole() != nullptr, vertices <= kWholeRow + 1) << vertices;
    if (groups.whole() != nullptr) {
      EXPECT_EQ(groups.whole()->size(), vertices);
    }
    for (const std::uint64_t width : {1, 2, 3, 4, 5, 8})
      for (const DType x : {DType::f32, DType::bf16})
        for (const bool accumulate : {false, true})
          check(graph, {.width = width,
                        .x = x,
                        .scaled = accumulate,
                        .accumulate = accumulate,
                        .most = 64,
                        .clusters = accumulate,
                        .slots = x == DType::f32});
  }
  const Csr32 large = clique(400);  // 159,600 edges
  const DeviceCsr matrix(large);
  const RowGroups groups(matrix.begin(), matrix.end(), matrix.rows, {.most = 64, .whole = true},
                         nullptr);
  EXPECT_EQ(groups.whole(), nullptr);
}

// Several warps share a row where the GPU has room for them: rows without edges, of fewer edges
// than warps, of no multiple of a warp's, and of as many as are not cut.
TEST(SpmmCuda, WarpsShareTheRowsOfASmallMatrix) {
  constexpr std::uint64_t kRows = 300;
  std::vector<test::Edge> edges;
  for (std::uint64_t row = 0; row < kRows; ++row)
    for (std::uint64_t k = 0; k < (row * 37) % 257; ++k)
      edges.push_back({(row + k * 7) % kRows, row, static_cast<float>(1 + (row + k) % 4)});
  const Csr32 graph(build_csr(test::edge_list<std::uint32_t>(kRows, edges, true)));
  for (const std::uint64_t width : {5, 8, 12, 16, 33, 64, 100, 128, 300})
    for (const DType x : {DType::f32, DType::bf16, DType::f16})
      for (const bool weighted : {false, true})
        check(graph, {.width = width,
                      .x = x,
                      .y = width % 2 == 0 ? x : DType::f32,
                      .weighted = weighted,
                      .scaled = !weighted,
                      .accumulate = width % 3 == 0,
                      .most = 64,
                      .slots = true});
}

// With fixed_order, a row has the same bits beside a row that is too long for whole rows.
TEST(SpmmCuda, FixedOrderDoesNotDependOnTheLongestRow) {
  auto edges = test::random_edges(300, 20'000, 5);
  for (std::size_t e = 0; e < edges.size(); ++e) edges[e].target %= 200;
  const auto graph_of = [&] {
    return Csr32(build_csr(test::edge_list<std::uint32_t>(300, edges, false)));
  };
  const Csr32 without = graph_of();
  for (std::uint64_t v = 0; v < 300; ++v) edges.push_back({v, 250, 1});
  const Csr32 with = graph_of();
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> x(300 * 2);
  for (float& value : x) value = uniform(random);
  const Case c{.width = 2, .most = 64, .fixed_order = true};
  const std::vector<float> zero(x.size());
  std::vector<float> one = on_gpu(without, c, x, zero, {}), other = on_gpu(with, c, x, zero, {});
  one.resize(400), other.resize(400);  // of the first 200 rows
  EXPECT_EQ(one, other);
}

TEST(SpmmCuda, TilesAreRefusedWhereTheyCannotBe) {
  const Csr32 flat = test::random_csr<std::uint32_t>(700, 2100, 2);
  EXPECT_THROW(check(flat, {.width = 5, .narrow = NarrowCut::tiles}), UsageError);
  const Csr32 long_rows = test::random_csr<std::uint32_t>(100, 9000, 4);
  EXPECT_THROW(check(long_rows, {.width = 1, .narrow = NarrowCut::tiles}), UsageError);
}

// A row's sum of many values that are not exact, against double precision.
TEST(SpmmCuda, TilesOfAHubAddPrecisely) {
  constexpr std::uint64_t kLeaves = 300'000;
  const Csr32 star = std::get<Csr32>(build_csr(generate_star(kLeaves)));
  std::vector<float> x(kLeaves);
  for (std::uint64_t v = 0; v < kLeaves; ++v) x[v] = 1 + static_cast<float>(v % 1000) / 999;
  const Case c{.width = 1, .narrow = NarrowCut::tiles};
  const std::vector<float> zero(kLeaves), found = on_gpu(star, c, x, zero, {});
  const std::vector<float> right = expected(star, c, x, zero, {});
  for (std::uint64_t v = 0; v < kLeaves; ++v) ASSERT_NEAR(found[v], right[v], 1e-6 * right[v]) << v;
}

// Values are not exact: the order of summation must not change from run to run, nor by clusters.
TEST(SpmmCuda, SameBitsInHundredRuns) {
  auto edges = test::random_edges(200, 60000, 5);
  for (std::size_t e = 0; e < 30000; ++e) edges[e].target = e % 5 == 0 ? 7 : 100 + e % 3;  // hubs
  const Csr32 graph = build_csr(test::edge_list<std::uint32_t>(200, edges, true));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> x(200 * 48);
  for (float& value : x) value = uniform(random);
  Case c{.width = 48, .weighted = true, .most = 64};
  const std::vector<float> zero(x.size()), first = on_gpu(graph, c, x, zero, {});
  for (int run = 1; run < 100; ++run) {
    c.clusters = run % 2 == 1;
    ASSERT_EQ(on_gpu(graph, c, x, zero, {}), first) << run;
  }
}
TEST(SpmmCuda, SameBitsInHundredRunsByTiles) {
  const Csr32 graph = std::get<Csr32>(build_csr(generate_star(20'000)));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const std::uint64_t width : {1, 3}) {
    std::vector<float> x(graph.vertices() * width);
    for (float& value : x) value = uniform(random);
    const Case c{.width = width, .narrow = NarrowCut::tiles};
    const std::vector<float> zero(x.size()), first = on_gpu(graph, c, x, zero, {});
    for (int run = 1; run < 100; ++run) ASSERT_EQ(on_gpu(graph, c, x, zero, {}), first) << run;
  }
}

TEST(SpmmCuda, RefusesTypesThatDoNotGoTogether) {
  EXPECT_THROW(check_all({.width = 4, .x = DType::f32, .y = DType::bf16}), UsageError);
  EXPECT_THROW(check_all({.width = 4, .x = DType::f16, .y = DType::bf16}), UsageError);
}

TEST(ClustersCuda, AreTheSameAsOnTheCpu) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const std::uint64_t vertices = 1 + seed * 97;
    const Csr32 graph = test::random_csr<std::uint32_t>(vertices, vertices * (seed % 7) * 10, seed);
    const DeviceCsr matrix(graph);
    const std::uint64_t rows = vertices - vertices / 4;  // the rest is halo
    EXPECT_EQ(find_clusters(matrix.begin(), matrix.end(), matrix.columns.data(), rows, 6, nullptr)
                  .to_host(),
              find_clusters(graph.offsets.span().first(rows), graph.offsets.span().subspan(1, rows),
                            graph.neighbours.data(), 6))
        << seed;
  }
}

TEST(WorkOrderCuda, IsTheSameAsOnTheCpu) {
  const auto compare = [](const Csr32& graph, std::uint64_t rows) {
    const DeviceCsr matrix(graph);
    EXPECT_EQ(
        order_of_work(matrix.begin(), matrix.end(), matrix.columns.data(), rows, nullptr).to_host(),
        order_of_work(graph.offsets.span().first(rows), graph.offsets.span().subspan(1, rows),
                      graph.neighbours.data()))
        << rows << " rows, " << graph.edges() << " edges";
  };
  for (const std::string_view name : {"small-crawl", "tiny-grid", "small-rmat", "tiny-star"}) {
    const Csr32 graph = std::get<Csr32>(build_csr(make(zoo_graph(name), 1)));
    for (const std::uint64_t part : {1, 2, 3}) compare(graph, graph.vertices() / part);
  }
  for (const std::uint64_t vertices : {0, 1, 255, 256, 257, 511, 512, 30'000})
    compare(test::random_csr<std::uint32_t>(vertices, 9 * vertices, 3), vertices);
}

TEST(CheckCuda, SaysWhatLacks) {
  EXPECT_THROW(DeviceArray<char>(std::size_t{1} << 50), DoesNotFitError);
  EXPECT_NO_THROW(DeviceArray<char>(1 << 20));  // the failure before is not reported again
}

}  // namespace
}  // namespace plait
