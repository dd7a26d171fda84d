// The order of work: by ids where these tell more than clusters, else by clusters.
#include "plait/reorder/work_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "plait/communities/clusters.h"
#include "plait/graph/dcsbm.h"
#include "plait/graph/random_graphs.h"
#include "plait/graph/zoo.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

// The arguments of both functions: the first `rows` rows of a graph.
struct Rows {
  std::span<const EdgeOffset> begin, end;
  const std::uint32_t* columns;
};
Rows rows_of(const Csr32& graph, std::uint64_t rows) {
  return {graph.offsets.span().first(rows), graph.offsets.span().subspan(1, rows),
          graph.neighbours.data()};
}

bool is_by_ids(const std::vector<std::uint32_t>& labels) {
  for (std::size_t row = 0; row < labels.size(); ++row)
    if (labels[row] != row / kRowsTogether) return false;
  return true;
}

Csr32 of_zoo(std::string_view name, double scale) {
  return std::get<Csr32>(build_csr(make(zoo_graph(name), scale)));
}

TEST(WorkOrder, OfACrawlIsByIds) {
  const Csr32 graph = of_zoo("small-crawl", 1);
  for (const std::uint64_t rows : {graph.vertices(), graph.vertices() / 2}) {
    const Rows r = rows_of(graph, rows);
    EXPECT_TRUE(is_by_ids(order_of_work(r.begin, r.end, r.columns))) << rows;
  }
}

#ifdef PLAIT_SANITIZED  // ten times slower and more
constexpr double kScale = 0.01;
#else
constexpr double kScale = 0.05;
#endif

TEST(WorkOrder, IsByClustersWhereIdsTellNoMore) {
  const auto by_clusters = [](const Csr32& graph, std::string_view name) {
    const Rows r = rows_of(graph, graph.vertices());
    EXPECT_EQ(order_of_work(r.begin, r.end, r.columns), find_clusters(r.begin, r.end, r.columns))
        << name;
  };
  for (const std::string_view name :
       {"grid", "ring", "tree", "rmat", "small-world", "cliques", "uniform", "star"})
    by_clusters(of_zoo(name, kScale), name);
  DcsbmOptions options = scaled(dcsbm_preset("products"), 0.4 * kScale);
  options.classes = 0, options.width = 0;
  by_clusters(std::get<Csr32>(generate_dcsbm(options).graph), "products");
}

// A crawl whose ids are shuffled has nothing that ids could tell.
TEST(WorkOrder, OfAShuffledCrawlIsNotByIds) {
  auto list =
      std::get<EdgeList<std::uint32_t>>(generate_crawl({.vertices = 20'000, .edges = 320'000}));
  std::vector<std::uint32_t> place(list.vertices);
  std::iota(place.begin(), place.end(), 0u);
  std::ranges::shuffle(place, std::mt19937(1));
  for (auto* ends : {&list.source, &list.target})
    for (std::uint32_t& v : *ends) v = place[v];
  const Csr32 graph = build_csr(std::move(list));
  const Rows r = rows_of(graph, graph.vertices());
  EXPECT_FALSE(is_by_ids(order_of_work(r.begin, r.end, r.columns)));
}

TEST(WorkOrder, OfFewRowsIsByClusters) {
  for (const std::uint64_t vertices : {0, 1, 2, 255}) {
    const Csr32 graph = test::random_csr<std::uint32_t>(vertices, 5 * vertices, 1);
    const Rows r = rows_of(graph, vertices);
    EXPECT_EQ(order_of_work(r.begin, r.end, r.columns), find_clusters(r.begin, r.end, r.columns));
  }
}

}  // namespace
}  // namespace plait
