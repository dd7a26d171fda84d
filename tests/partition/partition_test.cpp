#include "plait/partition/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plait/base/error.h"
#include "plait/partition/quality.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

TEST(Partition, EverySchemeOwnsEveryVertexOnce) {
  for (const std::uint64_t vertices : {1u, 2u, 3u, 7u, 100u, 1000u})
    for (const std::size_t edges : {0u, 5u, 4000u}) {
      const AnyCsr graph = test::random_csr<std::uint32_t>(vertices, edges, 1);
      for (const PartitionScheme scheme : partition_schemes())
        for (const int parts : {1, 2, 3, 4, 9}) {
          const Partition p = make_partition(scheme, graph, parts);
          SCOPED_TRACE(fmt::format("{} {} {} {}", vertices, edges, to_string(scheme), parts));
          ASSERT_EQ(p.parts(), parts);
          ASSERT_EQ(p.vertices(), vertices);
          std::uint64_t seen = 0, largest = 0;
          for (int part = 0; part < parts; ++part) {
            largest = std::max(largest, p.size(part));
            for (std::uint64_t r = 0; r < p.size(part); ++r, ++seen) {
              const std::uint64_t v = p.vertex(part, r);
              ASSERT_LT(v, vertices);
              ASSERT_EQ(p.owner(v), part);
              ASSERT_EQ(p.row(v), r);
              if (r > 0) {
                ASSERT_LT(p.vertex(part, r - 1), v);
              }
            }
          }
          ASSERT_EQ(seen, vertices);
          ASSERT_EQ(p.largest(), largest);
        }
    }
}

TEST(Partition, ByEdgesBalancesEdgesOfASkewedGraph) {
  // Vertex i has about 1000 / (i + 1) edges: equal vertex counts would give rank 0 most of them.
  std::vector<test::Edge> edges;
  for (std::uint64_t i = 0; i < 1000; ++i)
    for (std::uint64_t k = 0; k <= 1000 / (i + 1); ++k) edges.push_back({(i + k) % 1000, i, 1});
  const AnyCsr graph = build_csr(test::edge_list<std::uint32_t>(1000, edges, false));
  const auto by_edges = measure_partition(graph, partition_by_edges(graph, 4));
  const auto by_vertices = measure_partition(graph, partition_by_vertices(1000, 4));
  EXPECT_LT(by_edges.edge_imbalance(), 1.3);
  EXPECT_GT(by_vertices.edge_imbalance(), 2.0);
}

TEST(Partition, MetisCutsTwoCliquesApart) {
  std::vector<test::Edge> edges;
  for (std::uint64_t i = 0; i < 40; ++i)
    for (std::uint64_t j = 0; j < 40; ++j)
      if (i != j && i % 2 == j % 2) edges.push_back({i, j, 1});
  edges.push_back({0, 1, 1});
  const AnyCsr graph = build_csr(test::edge_list<std::uint32_t>(40, edges, false));
  EXPECT_EQ(measure_partition(graph, partition_by_metis(graph, 2, 0)).cut(), 1u);
}

TEST(Partition, QualityCountsByHand) {
  // 0 <- 1, 0 <- 2, 1 <- 2, 1 <- 2 (parallel), 3 <- 3; parts {0, 1} and {2, 3}.
  const AnyCsr graph = build_csr(test::edge_list<std::uint32_t>(
      4, {{1, 0, 1}, {2, 0, 1}, {2, 1, 1}, {2, 1, 1}, {3, 3, 1}}, false));
  const auto quality = measure_partition(graph, Partition::contiguous({0, 2, 4}));
  EXPECT_EQ(quality.parts[0].edges, 4u);
  EXPECT_EQ(quality.parts[0].remote_edges, 3u);
  EXPECT_EQ(quality.parts[0].halo_rows, 1u);
  EXPECT_EQ(quality.parts[0].bytes(16), 64u);
  EXPECT_EQ(quality.parts[1].edges, 1u);
  EXPECT_EQ(quality.cut(), 3u);
  EXPECT_DOUBLE_EQ(quality.edge_imbalance(), 1.6);
}

TEST(Partition, NamesTheSchemesWhenOneIsUnknown) {
  EXPECT_THROW(parse_partition_scheme("edgs"), UsageError);
  const AnyCsr graph = test::random_csr<std::uint32_t>(3, 3, 1);
  EXPECT_THROW(make_partition(PartitionScheme::edges, graph, 0), UsageError);
}

}  // namespace
}  // namespace plait
