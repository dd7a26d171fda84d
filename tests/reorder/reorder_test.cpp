// Orders of vertices: each lists every vertex once, whatever the graph and the number of threads,
// and does what its method is for.
#include "plait/reorder/reorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "plait/base/parallel.h"
#include "plait/communities/moves.h"
#include "plait/communities/quotient.h"
#include "plait/graph/dcsbm.h"
#include "plait/graph/generate.h"
#include "plait/graph/renumber.h"
#include "plait/graph/shapes.h"
#include "plait/graph/statistics.h"
#include "plait/graph/validate.h"
#include "plait/partition/quality.h"
#include "plait/reorder/communities.h"
#include "plait/reorder/merge_levels.h"
#include "tests/support/random_graph.h"

namespace plait::test {
namespace {

std::vector<std::uint64_t> order_of(ReorderMethod method, const AnyCsr& graph) {
  const Reordering found = find_order(method, {graph, is_symmetric(graph)});
  if (found.order.empty()) {
    std::vector<std::uint64_t> ids(vertex_count(graph));
    std::iota(ids.begin(), ids.end(), std::uint64_t{0});
    return ids;
  }
  return {found.order.begin(), found.order.end()};
}

AnyCsr in_order(const AnyCsr& graph, const std::vector<std::uint64_t>& order) {
  return renumbered(Dataset{.graph = graph}, order).graph;
}

DcsbmOptions with_communities() {
  DcsbmOptions options{.vertices = 20000, .edges = 400000, .communities = 40};
  options.width = 0;
  return options;
}

// Graphs without vertices or edges, and of one kind of vertex.
std::vector<AnyCsr> odd_graphs() {
  std::vector<AnyCsr> graphs;
  for (const std::uint64_t vertices : {0, 1, 2, 7}) {
    graphs.push_back(random_csr<std::uint32_t>(vertices, 0, 1));
    graphs.push_back(random_csr<std::uint64_t>(vertices, 12, 1));  // loops and parallel edges
  }
  graphs.push_back(star_both_ways(500, true).graph);
  graphs.push_back(star_both_ways(500, false).graph);
  graphs.push_back(build_csr(generate_ring(2000)));
  graphs.push_back(build_csr(generate_grid(30, 50)));
  graphs.push_back(random_csr<std::uint32_t>(3000, 2000, 3));
  graphs.push_back(random_csr<std::uint64_t>(3000, 20000, 4, true));
  return graphs;
}

TEST(Reorder, ListsEveryVertexOnceAndThoseWithoutEdgesLast) {
  for (const AnyCsr& graph : odd_graphs())
    for (const ReorderMethod method : reorder_methods()) {
      SCOPED_TRACE(fmt::format("{} on {} vertices, {} edges", to_string(method),
                               vertex_count(graph), edge_count(graph)));
      const auto order = order_of(method, graph);
      ASSERT_EQ(order.size(), vertex_count(graph));
      EXPECT_EQ(first_no_permutation(order), order.size());
      if (method == ReorderMethod::none || method == ReorderMethod::automatic) continue;
      const AnyCsr after = in_order(graph, order);
      std::set<std::uint64_t> read;
      std::visit([&](const auto& g) { read.insert(g.neighbours.begin(), g.neighbours.end()); },
                 after);
      bool ended = false;
      std::visit(
          [&](const auto& g) {
            for (std::uint64_t v = 0; v < g.vertices(); ++v) {
              const bool bare = g.degree(v) == 0 && !read.contains(v);
              EXPECT_TRUE(bare || !ended) << v;
              EXPECT_TRUE(!ended || order[v] > order[v - 1]);
              ended = bare;
            }
          },
          after);
    }
}

TEST(Reorder, DoesNotDependOnThreads) {
  const AnyCsr undirected = generate_dcsbm(with_communities()).graph;
  const AnyCsr directed = random_csr<std::uint64_t>(5000, 40000, 9);
  for (const AnyCsr& graph : {undirected, directed})
    for (const ReorderMethod method : reorder_methods()) {
      std::vector<std::vector<std::uint64_t>> orders;
      for (const int threads : {1, 2, 5}) {
        const ThreadCount use(threads);
        orders.push_back(order_of(method, graph));
      }
      EXPECT_EQ(orders[0], orders[1]) << to_string(method);
      EXPECT_EQ(orders[0], orders[2]) << to_string(method);
    }
}

TEST(Reorder, CommunitiesAreFoundAndStandTogether) {
  const AnyCsr graph = generate_dcsbm(with_communities()).graph;
  const Reordering found = find_order(ReorderMethod::automatic, {graph, true});
  EXPECT_EQ(found.method, ReorderMethod::communities);
  const CommunityStatistics whole = community_statistics(graph, found.communities);
  EXPECT_GT(whole.modularity, 0.75);  // planted: 0.8 less the edges by chance
  EXPECT_NEAR(static_cast<double>(whole.communities), 40, 4);
  std::set<std::uint32_t> ended;
  std::uint32_t last = found.communities[found.order[0]];
  for (const std::uint64_t v : found.order) {
    const std::uint32_t now = found.communities[v];
    if (now == last) continue;
    EXPECT_TRUE(ended.insert(last).second) << "community " << last << " is torn";
    last = now;
  }
  const AnyCsr after = in_order(graph, {found.order.begin(), found.order.end()});
  EXPECT_LT(averaged_edge_span(after), 0.4 * averaged_edge_span(graph));
  const auto halo = [](const AnyCsr& any) {
    return measure_partition(any, partition_by_edges(any, 4)).halo_rows();
  };
  EXPECT_LT(static_cast<double>(halo(after)), 0.8 * static_cast<double>(halo(graph)));
}

TEST(Reorder, CommunitiesOfDirectedGraphs) {
  // Rings of twelve, whose vertices read the next one, and one of the next ring.
  std::vector<Edge> edges;
  const auto shuffled = [](std::uint64_t v) { return v * 101 % 1200; };
  for (std::uint64_t v = 0; v < 1200; ++v)
    for (std::uint64_t k = 1; k <= 4; ++k)
      edges.push_back({shuffled(v / 12 * 12 + (v + k) % 12), shuffled(v), 1});
  const AnyCsr graph = build_csr(edge_list<std::uint32_t>(1200, edges, false));
  const Reordering found = find_order(ReorderMethod::communities, {graph, false});
  EXPECT_GT(community_statistics(graph, found.communities).modularity, 0.95);
  EXPECT_LT(averaged_edge_span(in_order(graph, order_of(ReorderMethod::communities, graph))), 12);
}

TEST(Reorder, AutomaticLeavesNearIdsAlone) {
  const AnyCsr ring = build_csr(generate_ring(1000000));
  EXPECT_EQ(find_order(ReorderMethod::automatic, {ring}).method, ReorderMethod::none);
  EXPECT_EQ(find_order(ReorderMethod::rcm, {ring}).method, ReorderMethod::rcm);
}

TEST(Reorder, DegreesDescend) {
  const AnyCsr graph = generate_dcsbm(with_communities()).graph;
  const auto after = std::get<Csr32>(in_order(graph, order_of(ReorderMethod::degree, graph)));
  for (std::uint64_t v = 1; v < after.vertices(); ++v)
    ASSERT_LE(after.degree(v), after.degree(v - 1));
}

TEST(Reorder, RcmMakesTheBandwidthSmall) {
  const AnyCsr grid = build_csr(generate_grid(20, 300));
  std::vector<std::uint64_t> shuffle(6000);
  for (std::uint64_t i = 0; i < 6000; ++i) shuffle[i] = i * 1009 % 6000;
  const AnyCsr graph = in_order(grid, shuffle);
  const auto after = std::get<Csr32>(in_order(graph, order_of(ReorderMethod::rcm, graph)));
  std::uint64_t bandwidth = 0;
  for (std::uint64_t i = 0; i < after.vertices(); ++i)
    for (const std::uint64_t j : after.row(i)) bandwidth = std::max(bandwidth, i > j ? i - j : 0);
  EXPECT_LE(bandwidth, 22u);  // the shorter side, and what the ends of levels cost
}

TEST(Reorder, BobaIsTheOrderOfFirstAppearance) {
  const AnyCsr graph = random_csr<std::uint32_t>(400, 3000, 8);
  std::vector<std::uint64_t> expected;
  std::set<std::uint64_t> seen;
  const auto take = [&](std::uint64_t v) {
    if (seen.insert(v).second) expected.push_back(v);
  };
  for (const std::uint64_t v : std::get<Csr32>(graph).neighbours) take(v);
  for (std::uint64_t v = 0; v < 400; ++v)
    if (std::get<Csr32>(graph).degree(v) > 0) take(v);
  for (std::uint64_t v = 0; v < 400; ++v) take(v);
  EXPECT_EQ(order_of(ReorderMethod::boba, graph), expected);
}

constexpr EdgeOffset kReorderNeverLarge = ~EdgeOffset{0};

// Returns the modularity after as many levels as raise it.
double modularity_of_levels(Quotient graph, EdgeOffset large) {
  for (;;) {
    std::vector<std::uint32_t> labels = merge(graph, 1, large);
    const std::uint32_t count = make_dense(labels);
    if (count == graph.communities()) return modularity_of(graph);
    graph = quotient_of(graph.rows(), labels, count);
  }
}

// The moves that all threads look for at once, which only large quotients take otherwise.
TEST(Merge, AtOnceIsTheSameForAnyNumberOfThreadsAndNearlyAsGood) {
  const Dataset data =
      generate_dcsbm({.vertices = 20000, .edges = 2000000, .classes = 0, .width = 0});
  std::vector<std::uint32_t> alone(20000);
  std::iota(alone.begin(), alone.end(), 0u);
  const auto new_quotient = [&] { return quotient_of(data.graph, true, alone, 20000); };
  const Quotient graph = new_quotient();
  std::vector<std::uint32_t> first;
  for (const int count : {1, 2, 5}) {
    const ThreadCount threads(count);
    const std::vector<std::uint32_t> labels = merge(graph, 1, 0);
    if (first.empty()) first = labels;
    EXPECT_EQ(labels, first) << count;
  }
  const double at_once = modularity_of_levels(new_quotient(), 0);
  EXPECT_GT(at_once, 0.97 * modularity_of_levels(new_quotient(), kReorderNeverLarge));
  EXPECT_GT(at_once, 0.3);
}

TEST(FindOrder, AutoKeepsAnOrderThatIsGood) {
  const AnyCsr path = build_csr(generate_path(5000));
  EXPECT_TRUE(find_order(ReorderMethod::automatic, {path, true}).order.empty());
}

TEST(Quotient, PutsCommunitiesWithEdgesToOthersFirst) {
  // Vertices 0 and 5 are alone, 1 and 2 a community of their own, 3 is joined to 4 and 4 to 6.
  std::vector<Edge> edges;
  for (const auto& [a, b] : {std::pair{1, 2}, {3, 4}, {4, 6}, {5, 5}})
    for (const bool back : {false, true})
      edges.push_back(
          {static_cast<std::uint64_t>(back ? b : a), static_cast<std::uint64_t>(back ? a : b), 1});
  const AnyCsr graph = build_csr(edge_list<std::uint32_t>(7, edges, false));
  std::vector<std::uint32_t> labels{0, 1, 1, 2, 3, 4, 5};
  Quotient quotient = quotient_of(graph, true, labels, 6);
  put_joined_first(labels, quotient);
  EXPECT_EQ(labels, (std::vector<std::uint32_t>{3, 4, 4, 0, 1, 5, 2}));
  EXPECT_EQ(quotient.offsets, (std::vector<EdgeOffset>{0, 1, 3, 4}));
  EXPECT_EQ(quotient.degrees, (std::vector<std::uint64_t>{1, 2, 1}));
  EXPECT_EQ(quotient.total, 8u);
  std::vector<std::uint32_t> seconds{quotient.neighbours[1], quotient.neighbours[2]};
  std::ranges::sort(seconds);
  EXPECT_EQ(seconds, (std::vector<std::uint32_t>{0, 2}));
}

TEST(MergeLevels, PlacesCommunitiesDepthFirst) {
  MergeLevels levels(6, 0.1);
  EXPECT_TRUE(levels.go_on(1));
  EXPECT_FALSE(levels.go_on(0));
  EXPECT_FALSE(levels.result().merged);
  EXPECT_EQ(levels.result().place, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
  levels.add({2, 0, 1, 0, 2, 3}, 4, 0.4);
  EXPECT_EQ(levels.resolution(), 1);
  levels.add({1, 0, 1, 0}, 2, 0.2);
  levels.add_nothing();
  EXPECT_EQ(levels.resolution(), 0.25);
  const MergedClusters found = levels.result();
  EXPECT_TRUE(found.merged);
  EXPECT_EQ(found.communities, 4u);
  EXPECT_EQ(found.community, (std::vector<std::uint32_t>{2, 0, 1, 0, 2, 3}));
  EXPECT_EQ(found.place, (std::vector<std::uint32_t>{4, 2, 0, 3, 5, 1}));
  const ClusterPlaces places = found.places();
  EXPECT_EQ(places.place_of(2), 0u);
  EXPECT_EQ(places.place_of(7), 7u);  // a cluster without edges to others
  EXPECT_EQ(places.community_of(7), 5u);
}

}  // namespace
}  // namespace plait::test
