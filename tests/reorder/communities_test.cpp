// Statistics of communities, against counts of each pair of labels.
#include "plait/reorder/communities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "plait/graph/dcsbm.h"
#include "tests/support/random_graph.h"

namespace plait::test {
namespace {

TEST(Communities, AreCountedByPairsOfLabels) {
  const std::uint64_t vertices = 9000;
  const auto edges = random_edges(vertices, 40000, 11);
  const AnyCsr graph = build_csr(edge_list<std::uint32_t>(vertices, edges, false));
  std::vector<std::uint32_t> labels(vertices);
  for (std::uint64_t i = 0; i < vertices; ++i)
    labels[i] = static_cast<std::uint32_t>(i < 20 ? i : i * i % 50 + 100);
  std::map<std::uint32_t, double> in, out, sizes;
  double inner = 0, by_chance = 0;
  for (const std::uint32_t label : labels) ++sizes[label];
  for (const Edge& e : edges) {
    ++in[labels[e.target]];
    ++out[labels[e.source]];
    inner += labels[e.target] == labels[e.source];
  }
  for (const auto& [label, count] : in) by_chance += count * out[label] / 40000 / 40000;
  const CommunityStatistics found = community_statistics(graph, labels);
  std::uint64_t larger = 0, largest = 0;
  for (const auto& [label, size] : sizes) {
    larger += size > 1;
    largest = std::max(largest, static_cast<std::uint64_t>(size));
  }
  EXPECT_EQ(found.communities, larger);
  EXPECT_EQ(found.largest, largest);
  EXPECT_DOUBLE_EQ(found.inner_edges, inner / 40000);
  EXPECT_NEAR(found.modularity, inner / 40000 - by_chance, 1e-12);
}

TEST(Communities, OfKnownLabels) {
  const std::vector<Edge> edges{{0, 1, 1}, {1, 0, 1}, {2, 3, 1}, {3, 2, 1}};
  const AnyCsr pairs = build_csr(edge_list<std::uint32_t>(5, edges, false));
  const CommunityStatistics two =
      community_statistics(pairs, std::vector<std::uint32_t>{0, 0, 2, 2, 4});
  EXPECT_EQ(two.communities, 2u);
  EXPECT_EQ(two.inner_edges, 1);
  EXPECT_EQ(two.modularity, 0.5);
  const CommunityStatistics one = community_statistics(pairs, std::vector<std::uint32_t>(5, 3));
  EXPECT_EQ(one.largest, 5u);
  EXPECT_EQ(one.modularity, 0);
  const AnyCsr none = build_csr(edge_list<std::uint32_t>(0, {}, false));
  EXPECT_EQ(community_statistics(none, true).communities, 0u);
}

TEST(Communities, AreStrongWherePlantedAndWeakInARandomGraph) {
  DcsbmOptions options{.vertices = 20000, .edges = 800000, .communities = 40, .classes = 40};
  options.width = 1;
  const CommunityStatistics planted = community_statistics(generate_dcsbm(options).graph, true);
  EXPECT_GE(planted.communities, 38u);
  EXPECT_GT(planted.modularity, 0.5);
  // The best partition of a random graph of mean degree d has a modularity of about 0.97 / sqrt(d)
  // (Reichardt and Bornholdt, Physica D 224, 2006); both ends of an edge count in d.
  const AnyCsr random = random_csr<std::uint32_t>(20000, 800000, 3);
  EXPECT_LT(community_statistics(random, false).modularity, 0.97 / std::sqrt(80) + 0.02);
}

}  // namespace
}  // namespace plait::test
