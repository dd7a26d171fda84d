// Graphs for tests of analytics: odd and random ones, from which datasets of any kind are made.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/graph/renumber.h"
#include "plait/graph/validate.h"
#include "tests/support/random_graph.h"

namespace plait::test {

// The edges of a graph, and the kind of dataset that it becomes.
struct Drawing {
  std::string name;
  std::uint64_t vertices = 0;
  std::vector<Edge> edges;
  bool weighted = false, wide = false;  // wide: ids of 64 bits
  unsigned order = 0;                   // the seed of an order to renumber by; 0: none

  Dataset dataset(bool with_weights) const {
    const auto build = [&]<VertexId V>(V) {
      return AnyCsr(build_csr(edge_list<V>(vertices, edges, with_weights)));
    };
    Dataset made{.name = name,
                 .graph = wide ? build(std::uint64_t{}) : build(std::uint32_t{}),
                 .symmetric = false};
    made.symmetric = is_symmetric(made.graph);
    if (order == 0) return made;
    std::vector<std::uint64_t> numbers(vertices);
    std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
    std::ranges::shuffle(numbers, std::mt19937(order));
    return renumbered(made, numbers);
  }
  Dataset dataset() const { return dataset(weighted); }
};

// Adds the reverse of every edge behind it, so that the graph is its own transpose.
inline std::vector<Edge> both_ways(const std::vector<Edge>& edges) {
  std::vector<Edge> all;
  for (const Edge& e : edges) {
    all.push_back(e);
    all.push_back({e.target, e.source, e.weight});
  }
  return all;
}
inline std::vector<Edge> turned_round(std::vector<Edge> edges) {
  for (Edge& e : edges) std::swap(e.source, e.target);
  return edges;
}

inline std::vector<Edge> path_edges(std::uint64_t vertices) {
  std::vector<Edge> edges;
  for (std::uint64_t v = 1; v < vertices; ++v)
    edges.push_back({v - 1, v, static_cast<float>(1 + v % 3)});
  return edges;
}
inline std::vector<Edge> ring_edges(std::uint64_t vertices) {
  std::vector<Edge> edges = path_edges(vertices);
  edges.push_back({vertices - 1, 0, 2});
  return edges;
}
// Vertex 0 has an edge to all others.
inline std::vector<Edge> star_edges(std::uint64_t vertices) {
  std::vector<Edge> edges;
  for (std::uint64_t v = 1; v < vertices; ++v)
    edges.push_back({0, v, static_cast<float>(1 + v % 5)});
  return edges;
}
// Edges to the right and downwards.
inline std::vector<Edge> grid_edges(std::uint64_t rows, std::uint64_t columns) {
  std::vector<Edge> edges;
  for (std::uint64_t v = 0; v < rows * columns; ++v) {
    if ((v + 1) % columns != 0) edges.push_back({v, v + 1, static_cast<float>(1 + v % 4)});
    if (v + columns < rows * columns) edges.push_back({v, v + columns, 1});
  }
  return edges;
}
inline std::vector<Edge> tree_edges(std::uint64_t vertices) {
  std::vector<Edge> edges;
  for (std::uint64_t v = 1; v < vertices; ++v) edges.push_back({(v - 1) / 2, v, 1});
  return edges;
}
inline std::vector<Edge> clique_edges(std::uint64_t first, std::uint64_t size) {
  std::vector<Edge> edges;
  for (std::uint64_t a = 0; a < size; ++a)
    for (std::uint64_t b = 0; b < size; ++b)
      if (a != b) edges.push_back({first + a, first + b, 1});
  return edges;
}

inline std::vector<Drawing> odd_drawings() {
  std::vector<Edge> islands = both_ways(ring_edges(9));  // then a clique, and lonely vertices
  std::ranges::copy(clique_edges(12, 7), std::back_inserter(islands));
  std::vector<Edge> loops = path_edges(9);
  for (std::uint64_t v = 0; v < 9; v += 2) loops.push_back({v, v, 3});
  std::vector<Edge> parallel = both_ways(path_edges(8));
  for (int k = 0; k < 2; ++k)
    for (Edge e : both_ways(path_edges(5)))
      parallel.push_back({e.source, e.target, static_cast<float>(4 - k)});
  std::vector<Edge> light = ring_edges(11);  // some edges weigh nothing
  for (Edge& e : light) e.weight = e.source % 3 == 0 ? 0 : 0.25f;
  return {{"no vertices", 0, {}},
          {"one vertex", 1, {}},
          {"a loop", 1, {{0, 0, 2}}},
          {"no edges", 7, {}},
          {"one edge", 2, {{1, 0, 2}}},
          {"three vertices", 3, {{0, 2, 1}, {2, 0, 1}}},
          {"two leading to one", 3, {{1, 0, 1}, {2, 0, 1}}},
          {"loops", 9, loops},
          {"parallel edges", 8, parallel},
          {"parallel edges one way", 4, {{0, 1, 3}, {0, 1, 1}, {1, 2, 2}, {1, 2, 2}, {3, 2, 1}}},
          {"light edges", 11, light},
          {"star outwards", 60, star_edges(60)},
          {"star inwards", 60, turned_round(star_edges(60))},
          {"star both ways", 60, both_ways(star_edges(60))},
          {"path", 40, path_edges(40)},
          {"path backwards", 40, turned_round(path_edges(40))},
          {"path both ways", 40, both_ways(path_edges(40))},
          {"ring", 33, ring_edges(33)},
          {"ring both ways", 33, both_ways(ring_edges(33))},
          {"grid", 42, both_ways(grid_edges(6, 7))},
          {"grid one way", 42, grid_edges(6, 7)},
          {"tree", 31, tree_edges(31)},
          {"tree both ways", 31, both_ways(tree_edges(31))},
          {"clique", 24, clique_edges(0, 24)},
          {"islands", 25, islands}};
}

// Returns the odd graphs in three kinds each: plain; renumbered with weights; with wide ids and the
// vertices in another order again.
inline std::vector<Drawing> all_odd_drawings() {
  std::vector<Drawing> all;
  for (const Drawing& plain : odd_drawings()) {
    all.push_back(plain);
    all.push_back(plain), all.back().name += ", renumbered", all.back().weighted = true;
    all.back().order = 1 + static_cast<unsigned>(all.size());
    all.push_back(plain), all.back().name += ", wide", all.back().wide = true;
    if (all.size() % 2 == 0) all.back().order = static_cast<unsigned>(all.size());
  }
  return all;
}

// Draws a graph: sparse or dense, in one piece or many, of any kind.
inline Drawing random_drawing(unsigned seed, std::uint64_t most_vertices) {
  std::mt19937 random(seed);
  Drawing drawing{.name = "random graph " + std::to_string(seed)};
  drawing.vertices = 1 + random() % (random() % 8 == 0 ? 5 : most_vertices);
  const std::size_t edges = drawing.vertices * (random() % 9) / 2;
  drawing.edges = random_edges(drawing.vertices, edges, seed);
  if (random() % 2 == 0) drawing.edges = both_ways(drawing.edges);
  if (random() % 2 == 0)
    for (std::size_t e = 0; e < drawing.edges.size(); e += 2) {
      const float weight = static_cast<float>(1 + random() % 1000) / 333;
      drawing.edges[e].weight = weight;
      if (e + 1 < drawing.edges.size()) drawing.edges[e + 1].weight = weight;
    }
  drawing.weighted = random() % 2 == 0;
  drawing.wide = random() % 4 == 0;
  drawing.order = random() % 3 == 0 ? seed + 1 : 0;
  return drawing;
}

}  // namespace plait::test
