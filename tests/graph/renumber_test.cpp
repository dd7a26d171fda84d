// Renumbering of datasets, against the meaning of every array, vertex by vertex.
#include "plait/graph/renumber.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "plait/graph/validate.h"
#include "tests/support/error_of.h"
#include "tests/support/random_graph.h"

namespace plait::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kVertices = 40, kWidth = 3;

std::vector<std::uint64_t> random_order(std::uint64_t vertices, unsigned seed) {
  std::vector<std::uint64_t> order(vertices);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

template <class T>
std::vector<T> counted(std::uint64_t count, std::uint64_t below) {
  std::vector<T> values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = static_cast<T>(i * 7 % below);
  return values;
}

// A dataset with everything, parallel edges of different weights included.
template <VertexId V>
Dataset everything() {
  Dataset data{.graph = random_csr<V>(kVertices, 300, 5, true)};
  data.features = {.rows = kVertices, .width = kWidth};
  data.features.f32 = counted<float>(kVertices * kWidth, 1000);
  data.labels = counted<std::int32_t>(kVertices, 11);
  data.classes = 11;
  data.splits = std::vector<Split>(2 * kVertices, Split::train);
  data.split_count = 2;
  std::vector<Split> splits;
  for (std::uint64_t i = 0; i < 2 * kVertices; ++i) splits.push_back(static_cast<Split>(i * 5 % 4));
  data.splits = splits;
  data.original_ids = counted<std::uint64_t>(kVertices, 9999);
  return data;
}

// The edges of a vertex by the numbers of the sources; those of parallel edges in their order.
std::map<std::uint64_t, std::vector<float>> edges_into(const Dataset& data, std::uint64_t vertex) {
  std::map<std::uint64_t, std::vector<float>> edges;
  std::visit(
      [&](const auto& graph) {
        for (EdgeOffset e = graph.offsets[vertex]; e < graph.offsets[vertex + 1]; ++e)
          edges[data.number(graph.neighbours[e])].push_back(graph.weight(e));
      },
      data.graph);
  return edges;
}

void expect_vertex(const Dataset& after, std::uint64_t v, const Dataset& before, std::uint64_t w) {
  EXPECT_EQ(after.number(v), before.number(w));
  EXPECT_EQ(edges_into(after, v), edges_into(before, w));
  for (std::uint64_t c = 0; c < kWidth; ++c)
    EXPECT_EQ(after.features.f32[v * kWidth + c], before.features.f32[w * kWidth + c]);
  EXPECT_EQ(after.labels[v], before.labels[w]);
  for (const std::uint64_t s : {0, 1})
    EXPECT_EQ(after.splits[s * kVertices + v], before.splits[s * kVertices + w]);
  EXPECT_EQ(after.original_ids[v], before.original_ids[w]);
}

template <VertexId V>
void expect_all() {
  const Dataset before = everything<V>();
  const auto first = random_order(kVertices, 1), second = random_order(kVertices, 2);
  const Dataset once = renumbered(before, first), twice = renumbered(once, second);
  validate(once, "once");
  validate(twice, "twice");
  for (std::uint64_t i = 0; i < kVertices; ++i) {
    expect_vertex(once, i, before, first[i]);
    expect_vertex(twice, i, before, first[second[i]]);
  }
  const Dataset undone = with_first_numbers(twice);
  EXPECT_TRUE(undone.numbers.empty());
  const auto& a = std::get<Csr<V>>(before.graph);
  const auto& b = std::get<Csr<V>>(undone.graph);
  EXPECT_TRUE(std::ranges::equal(a.offsets, b.offsets));
  EXPECT_TRUE(std::ranges::equal(a.neighbours, b.neighbours));
  EXPECT_TRUE(std::ranges::equal(a.weights, b.weights));
  for (std::uint64_t i = 0; i < kVertices; ++i) expect_vertex(undone, i, before, i);
}

TEST(Renumber, MovesAllThatIsKnownOfVertices) {
  expect_all<std::uint32_t>();
  expect_all<std::uint64_t>();
}

TEST(Renumber, MovesOtherForms) {
  const std::vector<std::uint64_t> order{2, 0, 1};
  Dataset data{
      .graph = Csr32{std::vector<EdgeOffset>{0, 1, 1, 3}, std::vector<std::uint32_t>{1, 0, 2}, {}}};
  data.features = {.rows = 3, .width = 4};
  data.features.sparse = {std::vector<EdgeOffset>{0, 2, 2, 3}, std::vector<std::uint32_t>{1, 3, 0},
                          std::vector<float>{5, 6, 7}};
  data.label_sets = std::vector<std::uint8_t>{0, 1, 1, 1, 0, 0};
  data.classes = 2;
  const Dataset after = renumbered(data, order);
  validate(after, "after");
  EXPECT_THAT(after.features.sparse.offsets.span(), ElementsAre(0, 1, 3, 3));
  EXPECT_THAT(after.features.sparse.neighbours.span(), ElementsAre(0, 1, 3));
  EXPECT_THAT(after.features.sparse.weights.span(), ElementsAre(7, 5, 6));
  EXPECT_THAT(after.label_sets.span(), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(std::get<Csr32>(after.graph).offsets.span(), ElementsAre(0, 2, 3, 3));
  EXPECT_THAT(std::get<Csr32>(after.graph).neighbours.span(), ElementsAre(0, 1, 2));
  Dataset set = data;
  set.label_sets = {};
  set.features = {.rows = 3, .width = 1};
  set.features.bf16 = std::vector<BFloat16>{to_bf16(1), to_bf16(2), to_bf16(3)};
  set.graph_ids = std::vector<std::uint32_t>{0, 1, 1};
  set.graphs = 2;
  set.labels = std::vector<std::int32_t>{0, 1};
  const Dataset moved = renumbered(set, order);
  EXPECT_EQ(to_float(moved.features.bf16[0]), 3);
  EXPECT_THAT(moved.graph_ids.span(), ElementsAre(1, 0, 1));
  EXPECT_THAT(moved.labels.span(), ElementsAre(0, 1));  // of graphs
}

TEST(Renumber, RefusesOrdersThatAreNone) {
  const Dataset data{.graph = random_csr<std::uint32_t>(3, 4, 1)};
  const auto error = [&](std::vector<std::uint64_t> order) {
    return error_of([&] { renumbered(data, order); });
  };
  EXPECT_THAT(error({0, 1}), HasSubstr("an order of 2 vertices was given for 3"));
  EXPECT_THAT(error({0, 2, 0}), HasSubstr("place 2 has vertex 0"));
  EXPECT_THAT(error({0, 3, 1}), HasSubstr("place 1 has vertex 3"));
  EXPECT_TRUE(renumbered(data, std::vector<std::uint64_t>{0, 1, 2}).numbers.empty());
}

// Returns the values of the edges of a pair of numbers, source and target, in their order.
std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::int64_t>> values_of_pairs(
    const Dataset& data, std::span<const std::int64_t> values) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::int64_t>> pairs;
  std::visit(
      [&](const auto& graph) {
        for (std::uint64_t v = 0; v < graph.vertices(); ++v)
          for (EdgeOffset e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e)
            pairs[{data.number(graph.neighbours[e]), data.number(v)}].push_back(values[e]);
      },
      data.graph);
  return pairs;
}

TEST(Renumbered, ValuesOfVerticesAndEdgesFollow) {
  const Dataset data = everything<std::uint32_t>();
  std::vector<std::int64_t> of_edges(data.edges()), of_vertices(data.vertices());
  std::iota(of_edges.begin(), of_edges.end(), std::int64_t{-9});
  std::iota(of_vertices.begin(), of_vertices.end(), std::int64_t{100});
  const Array<std::int64_t> same = edge_values_in_order(data, of_edges);
  EXPECT_TRUE(std::ranges::equal(same, of_edges));
  Dataset twice = renumbered(data, random_order(kVertices, 3));
  twice = renumbered(twice, random_order(kVertices, 4));
  EXPECT_EQ(values_of_pairs(twice, edge_values_in_order(twice, of_edges)),
            values_of_pairs(data, of_edges));
  const Array<std::int64_t> there = vertex_values_in_order(twice, of_vertices);
  for (std::uint64_t v = 0; v < kVertices; ++v) EXPECT_EQ(there[v], of_vertices[twice.number(v)]);
  of_edges.pop_back(), of_vertices.pop_back();
  EXPECT_THROW(edge_values_in_order(twice, of_edges), Error);
  EXPECT_THROW(vertex_values_in_order(twice, of_vertices), Error);
}

}  // namespace
}  // namespace plait::test
