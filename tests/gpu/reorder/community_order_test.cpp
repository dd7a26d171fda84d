// The order by communities on the GPU: the CPU's, number by number.
#include "plait/reorder/cuda/community_order.h"

#include <gtest/gtest.h>

#include "plait/base/cuda/upload.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/communities/cuda/quotient.cuh"
#include "plait/communities/moves.h"
#include "plait/graph/build.h"
#include "plait/graph/dcsbm.h"
#include "plait/graph/generate.h"
#include "plait/graph/random_graphs.h"
#include "plait/graph/shapes.h"
#include "plait/graph/validate.h"
#include "plait/graph/zoo.h"
#include "plait/reorder/merge_levels.h"
#include "plait/reorder/reorder.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

using test::Edge;

// Returns whether the graph has been found to be symmetric.
bool expect_equal_orders(const AnyCsr& graph, std::optional<bool> symmetric = {}) {
  const bool both_ways = symmetric.value_or(is_symmetric(graph));
  const Reordering here = find_order(ReorderMethod::communities, {graph, both_ways});
  const Reordering there =
      find_order(ReorderMethod::communities,
                 {.graph = graph, .symmetric = both_ways, .on_gpu = gpu_order_by_communities});
  EXPECT_FALSE(here.gpu);
  EXPECT_TRUE(there.gpu);
  EXPECT_TRUE(std::ranges::equal(here.order, there.order));
  EXPECT_EQ(here.communities, there.communities);
  return both_ways;
}

TEST(CommunityOrderCuda, OfRandomGraphs) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const std::uint64_t vertices = seed * 197, edges = vertices * (seed % 7) * 3;
    // Loops and parallel edges come up, and vertices without edges.
    if (seed % 2 == 0)
      expect_equal_orders(test::random_csr<std::uint32_t>(vertices, edges, seed));
    else
      expect_equal_orders(test::random_csr<std::uint64_t>(vertices, edges, seed));
    std::vector<Edge> pairs = test::random_edges(vertices, edges / 2, seed);
    for (std::size_t i = 0, count = pairs.size(); i < count; ++i)
      pairs.push_back({pairs[i].target, pairs[i].source, 1});
    expect_equal_orders(build_csr(test::edge_list<std::uint32_t>(vertices, pairs, false)));
  }
}

TEST(CommunityOrderCuda, OfShapes) {
  for (const std::uint64_t vertices : {1, 2, 500, 300000})
    for (const bool both : {true, false})
      expect_equal_orders(test::star_both_ways(vertices, both).graph);
  expect_equal_orders(build_csr(generate_ring(2000)));
  for (const std::uint64_t vertices : {1000, 100000}) {  // a directed path
    std::vector<Edge> edges;
    for (std::uint64_t v = 1; v < vertices; ++v) edges.push_back({v - 1, v, 1});
    expect_equal_orders(build_csr(test::edge_list<std::uint32_t>(vertices, edges, false)));
  }
  expect_equal_orders(build_csr(generate_grid(300, 500)));
  expect_equal_orders(test::random_csr<std::uint32_t>(3000, 2000, 3));
}

TEST(CommunityOrderCuda, OfTheZoo) {
  for (const ZooGraph& graph : zoo()) {
    SCOPED_TRACE(graph.name);
    expect_equal_orders(build_csr(make(graph, 0.01)));
  }
}

TEST(CommunityOrderCuda, OfBlockModels) {
  for (const std::uint64_t communities : {40, 3000})
    for (const double leaving : {0.1, 0.6}) {
      DcsbmOptions options{
          .vertices = 200000, .edges = 4000000, .communities = communities, .leaving = leaving};
      options.width = 0, options.classes = 0;
      EXPECT_TRUE(expect_equal_orders(generate_dcsbm(options).graph));
    }
}

TEST(CommunityOrderCuda, OfHeavyTails) {
  RmatOptions options;
  options.vertices = 1 << 17, options.edges = 3000000;
  EXPECT_FALSE(expect_equal_orders(build_csr(generate_rmat(options))));
  // Many clusters, and rows of the quotient with many entries.
  EXPECT_FALSE(expect_equal_orders(test::random_csr<std::uint32_t>(200000, 1500000, 5)));
}

// A quotient in which the first rows lead to all others, and these to a few.
Quotient with_hubs(std::uint32_t communities, std::uint64_t hubs = 1) {
  std::vector<Edge> edges;
  const auto join = [&](std::uint64_t a, std::uint64_t b) {
    edges.push_back({a, b, 1});
    edges.push_back({b, a, 1});
  };
  for (std::uint64_t c = 1; c < communities; ++c) {
    join(c, c * 7 % communities);
    join(c, c / 2);
    for (std::uint64_t hub = 0; hub < hubs; ++hub) join(c, hub);
  }
  const AnyCsr graph = build_csr(test::edge_list<std::uint32_t>(communities, edges, false));
  std::vector<std::uint32_t> own(communities);
  for (std::uint32_t c = 0; c < communities; ++c) own[c] = c;
  return quotient_of(graph, true, own, communities);
}

// Sizes around those of the pieces in which it goes.
TEST(UploadCuda, CopiesEveryByteThereAndBack) {
  for (const std::size_t size :
       {0, 1, 1000, (4 << 20) - 1, 4 << 20, (16 << 20) + 1, (40 << 20) + 12345}) {
    std::vector<std::uint8_t> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<std::uint8_t>(i * 31 + i / 251);
    const DeviceArray<std::uint8_t> there = uploaded(std::span<const std::uint8_t>(values));
    EXPECT_TRUE(there.to_host() == values) << size;
    std::vector<std::uint8_t> back(size);
    download(back.data(), there.data(), size);
    EXPECT_TRUE(back == values) << size;
  }
}

template <class T>
DeviceArray<T> there(std::span<const T> values) {
  return DeviceArray<T>(values);
}

DeviceQuotient on_gpu(const Quotient& graph) {
  DeviceQuotient found;
  found.offsets = there(std::span<const EdgeOffset>(graph.offsets));
  found.neighbours = there(graph.neighbours.span());
  found.weights = there(graph.weights.span());
  found.degrees = there(std::span<const std::uint64_t>(graph.degrees));
  found.total = graph.total, found.communities = graph.communities();
  return found;
}

void expect_equal_merging(const Quotient& graph) {
  const DeviceQuotient there = on_gpu(graph);
  for (const double resolution : {1.0, 0.25, 1e-4}) {
    SCOPED_TRACE(fmt::format("{} communities, {}", graph.communities(), resolution));
    std::vector<std::uint32_t> here = merge(graph, resolution, 0);
    DeviceArray<std::uint32_t> labels = merge(there, resolution, nullptr);
    ASSERT_EQ(here, labels.to_host());
    const std::uint32_t count = make_dense(here);
    ASSERT_EQ(count, make_dense(labels, graph.communities(), nullptr));
    EXPECT_EQ(modularity_of(quotient_of(graph.rows(), here, count)),
              modularity_of(quotient_of(there.rows(), labels, count, nullptr), nullptr));
  }
}

// Rows of all lengths: those of warps, of small and large blocks, of tables in memory, and giant
// ones, few and many.
TEST(CommunityMergeCuda, EqualsTheCpus) {
  for (const std::uint32_t communities : {300u, 900u, 7000u, 12000u, 40000u, 500000u})
    expect_equal_merging(with_hubs(communities));
  expect_equal_merging(with_hubs(30000, 20));
  expect_equal_merging(with_hubs(18000, 70));
  trim_gpu_pool();
}

TEST(CommunityMergeCuda, AddsWeightsBeyond32Bits) {
  Quotient graph = with_hubs(200);
  graph.total = 0;
  for (std::uint64_t& weight : graph.weights) weight = weight * 0x7fffffff + 0x80000001;
  for (std::uint32_t c = 0; c < graph.communities(); ++c) {
    graph.degrees[c] = 0;
    for (EdgeOffset e = graph.offsets[c]; e < graph.offsets[c + 1]; ++e)
      graph.degrees[c] += graph.weights[e];
    graph.total += graph.degrees[c];
  }
  EXPECT_EQ(merge(graph, 1, 0), merge(on_gpu(graph), 1, nullptr).to_host());
}

// The threads find the order if the GPU's memory is short.
TEST(CommunityOrderCuda, FallsBackToTheCpu) {
  const AnyCsr graph = test::random_csr<std::uint32_t>(200000, 2000000, 5);
  std::vector<DeviceArray<std::byte>> taken;
  for (std::size_t bytes = gpu_free_memory(); bytes >= 1 << 20;) try {
      taken.emplace_back(bytes);
    } catch (const DoesNotFitError&) {
      bytes /= 2;
    }
  const Reordering found =
      find_order(ReorderMethod::communities, {.graph = graph, .on_gpu = gpu_order_by_communities});
  taken.clear();
  EXPECT_FALSE(found.gpu);
  const Reordering there =
      find_order(ReorderMethod::communities, {.graph = graph, .on_gpu = gpu_order_by_communities});
  EXPECT_TRUE(there.gpu);
  EXPECT_TRUE(std::ranges::equal(found.order, there.order));
}

}  // namespace
}  // namespace plait
