// Blocks against sets of the standard library.
#include "plait/placement/row_block.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "plait/placement/own_rows.h"
#include "tests/support/error_of.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

using test::random_csr;

TEST(VertexSet, NumbersInAscendingOrder) {
  VertexSet set(200);
  const std::set<std::uint64_t> wanted{0, 1, 63, 64, 65, 127, 128, 199};
  for (int twice = 0; twice < 2; ++twice)
    for (const std::uint64_t v : wanted) set.insert(v);
  EXPECT_EQ(set.size(), wanted.size());
  set.number();
  Slot next = 0;
  std::vector<std::uint64_t> found;
  set.each([&](std::uint64_t v) { found.push_back(v); });
  EXPECT_EQ(found, std::vector<std::uint64_t>(wanted.begin(), wanted.end()));
  for (const std::uint64_t v : wanted) EXPECT_EQ(set.slot(v), next++);
  for (std::uint64_t v = 0; v < 200; ++v) EXPECT_EQ(set.contains(v), wanted.contains(v));
  set.clear();
  EXPECT_EQ(set.size(), 0u);
  EXPECT_FALSE(set.contains(64));
}

// Returns the whole graph's rows, with loops as the block has them.
template <VertexId V>
Csr<V> looped(const Csr<V>& graph, bool loops) {
  const Partition all = Partition::contiguous({0, graph.vertices()});
  return loops ? with_one_loop_each(graph, all, 0) : graph;
}

// Returns the bytes that a block of rows takes, by BlockCost and by the copies of make_row_block().
template <VertexId V>
std::uint64_t bytes_of(const Csr<V>& graph, const BlockCost& cost, std::uint64_t begin,
                       std::uint64_t end) {
  std::set<std::uint64_t> sources;
  std::uint64_t edges = 0;
  for (std::uint64_t v = begin; v < end; ++v) {
    sources.insert(graph.row(v).begin(), graph.row(v).end());
    if (cost.one_loop_each) sources.insert(v);
    edges += graph.degree(v) + (cost.one_loop_each ? 1 : 0);
  }
  const std::uint64_t copy = sizeof(V) + (graph.weighted() ? 4 : 0);
  return (end - begin) * (cost.per_row + 24) + sources.size() * cost.per_source +
         edges * ((cost.one_loop_each ? 2 : 1) * copy + 4);
}

template <VertexId V>
void expect_rows_of(const Csr<V>& graph, const RowBlock& block) {
  const std::vector<float> degree = row_sums(graph);
  for (std::uint64_t i = 0; i < block.rows(); ++i) {
    const std::uint64_t v = block.begin + i;
    std::vector<std::uint64_t> found;
    for (EdgeOffset e = block.offsets[i]; e < block.offsets[i + 1]; ++e) {
      const Slot slot = block.slots[e];
      found.push_back(block.sources.empty() ? slot : block.sources[slot]);
      if (graph.weighted()) {
        EXPECT_EQ(block.weights[e], graph.weights[graph.offsets[v] + e - block.offsets[i]]);
      }
    }
    EXPECT_EQ(found, std::vector<std::uint64_t>(graph.row(v).begin(), graph.row(v).end()));
    EXPECT_EQ(block.degree[i], degree[v]);
  }
}

// Blocks follow each other to the end, are within the limit, and none could be longer.
template <VertexId V>
int check_blocks(const Csr<V>& graph, const BlockCost& cost) {
  VertexSet sources(graph.vertices());
  const Csr<V> rows = looped(graph, cost.one_loop_each);
  int blocks = 0;
  for (std::uint64_t v = 0; v < graph.vertices(); ++blocks) {
    const BlockRange range = cut_block(graph, v, graph.vertices(), cost, sources);
    EXPECT_EQ(range.begin, v);
    EXPECT_GT(range.end, v);
    EXPECT_LE(range.end, graph.vertices());
    EXPECT_EQ(range.gathered, bytes_of(graph, cost, v, range.end) <= cost.limit);
    EXPECT_TRUE(range.gathered || range.end == v + 1);
    if (range.end < graph.vertices()) {
      EXPECT_GT(bytes_of(graph, cost, v, range.end + 1), cost.limit);
    }
    expect_rows_of(rows, make_row_block(graph, range, cost.one_loop_each, sources));
    v = range.end;
  }
  return blocks;
}

TEST(RowBlock, HoldsTheRowsThatFit) {
  for (const bool loops : {false, true})
    for (const bool weighted : {false, true})
      for (const std::uint64_t limit : {1500u, 10000u, 10000000u}) {
        const BlockCost cost{
            .limit = limit, .per_row = 40, .per_source = 72, .edges = true, .one_loop_each = loops};
        const int blocks = check_blocks(random_csr<std::uint32_t>(300, 900, 4, weighted), cost);
        EXPECT_EQ(blocks, check_blocks(random_csr<std::uint32_t>(300, 900, 4, weighted), cost));
        EXPECT_EQ(blocks == 1, limit == 10000000u);
        check_blocks(random_csr<std::uint64_t>(200, 1000, 5, weighted), cost);
      }
}

TEST(RowBlock, AHubReadsItsNeighboursWhereTheyAre) {
  const auto star = test::star_both_ways(500, true).graph;
  const BlockCost cost{.limit = 8000, .per_row = 8, .per_source = 64, .edges = true};
  VertexSet sources(500);
  const BlockRange hub = cut_block(star, 0, 500, cost, sources);
  EXPECT_FALSE(hub.gathered);
  EXPECT_EQ(hub.end, 1u);
  check_blocks(star, cost);
}

TEST(RowBlock, ARowThatIsTooLongIsRefusedWithTheFigures) {
  const auto star = test::star_both_ways(500, true).graph;
  BlockCost cost{.limit = 2000, .per_row = 8, .per_source = 64, .edges = true, .what = "layer 2"};
  VertexSet sources(500);
  const std::string error = error_of([&] { cut_block(star, 0, 500, cost, sources); });
  for (const char* word : {"layer 2", "vertex 0 with 500 edges", "3.9 KiB", "2.0 KiB"})
    EXPECT_NE(error.find(word), std::string::npos) << error;
  EXPECT_THROW(cut_block(star, 0, 500, cost, sources), DoesNotFitError);
  cost.edges = false;  // nothing but its own row is needed
  EXPECT_EQ(cut_block(star, 0, 500, cost, sources).end, 250u);
}

TEST(RowBlock, OfNoRows) {
  const auto graph = random_csr<std::uint32_t>(0, 0, 1);
  VertexSet sources(0);
  const BlockRange none = cut_block(graph, 0, 0, {.limit = 1}, sources);
  EXPECT_EQ(none.end, 0u);
}

}  // namespace
}  // namespace plait
