#include "plait/graph/zoo.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "plait/base/error.h"
#include "plait/graph/generate.h"
#include "plait/graph/random_graphs.h"
#include "plait/graph/shapes.h"

namespace plait {
namespace {

using Count = std::uint64_t;

AnyEdgeList square_grid(Count vertices) {
  const auto side = static_cast<Count>(std::sqrt(static_cast<double>(vertices)));
  return generate_grid(side, side);
}
// Directed edges between uniformly drawn vertices (Erdos and Renyi).
AnyEdgeList uniform(Count vertices) {
  return generate_rmat(
      {.vertices = vertices, .edges = 20 * vertices, .a = .25, .b = .25, .c = .25});
}
AnyEdgeList rmat(Count vertices) {
  return generate_rmat({.vertices = vertices, .edges = 16 * vertices});
}
AnyEdgeList binary_tree(Count vertices) { return generate_tree(vertices, 2); }
AnyEdgeList wide_tree(Count vertices) { return generate_tree(vertices, 100); }
AnyEdgeList clique(Count vertices) { return generate_cliques(vertices, vertices); }
AnyEdgeList cliques(Count vertices) { return generate_cliques(vertices, 30); }
AnyEdgeList large_cliques(Count vertices) { return generate_cliques(vertices, 300); }
AnyEdgeList small_world(Count vertices) {
  return generate_small_world({.vertices = vertices, .degree = 10});
}
AnyEdgeList bipartite(Count vertices) {
  return generate_bipartite(
      {.vertices = vertices, .left = vertices / 100 + 1, .edges = 20 * vertices});
}
AnyEdgeList crawl(Count vertices) {
  return generate_crawl({.vertices = vertices, .edges = 16 * vertices});
}

constexpr std::array kZoo{
    ZooGraph{"grid", "square grid", 9'000'000, square_grid},
    ZooGraph{"ring", "ring", 8'000'000, generate_ring},
    ZooGraph{"path", "path", 8'000'000, generate_path},
    ZooGraph{"star", "star", 5'000'000, generate_star},
    ZooGraph{"tree", "binary tree", 8'000'000, binary_tree},
    ZooGraph{"wide-tree", "tree with 100 children per vertex", 5'000'000, wide_tree},
    ZooGraph{"clique", "clique", 5'000, clique},
    ZooGraph{"cliques", "cliques of 30 vertices, joined in a row", 2'000'000, cliques},
    ZooGraph{"large-cliques", "cliques of 300 vertices, joined in a row", 200'000, large_cliques},
    ZooGraph{"uniform", "uniformly drawn edges, 20 per vertex", 2'000'000, uniform},
    ZooGraph{"rmat", "R-MAT, 16 edges per vertex", 1 << 22, rmat},
    ZooGraph{"bipartite", "two sides, 1 to 99, 20 edges per vertex", 2'000'000, bipartite},
    ZooGraph{"small-world", "small world, 10 edges per vertex", 4'000'000, small_world},
    ZooGraph{"crawl", "directed crawl, 16 links per page", 3'000'000, crawl},
    ZooGraph{"tiny-grid", "square grid", 4'096, square_grid},
    ZooGraph{"tiny-star", "star", 5'000, generate_star},
    ZooGraph{"tiny-clique", "clique", 200, clique},
    ZooGraph{"tiny-uniform", "uniformly drawn edges, 20 per vertex", 4'000, uniform},
    ZooGraph{"small-rmat", "R-MAT, 16 edges per vertex", 20'000, rmat},
    ZooGraph{"small-crawl", "directed crawl, 16 links per page", 100'000, crawl},
};

}  // namespace

std::span<const ZooGraph> zoo() { return kZoo; }

const ZooGraph& zoo_graph(std::string_view name) {
  std::string names;
  for (const ZooGraph& graph : kZoo) {
    if (graph.name == name) return graph;
    names += (names.empty() ? "" : ", ") + std::string(graph.name);
  }
  throw UsageError(fmt::format("'{}' is not one of {}", name, names));
}

AnyEdgeList make(const ZooGraph& graph, double scale) {
  constexpr Count kSmall = Count{1} << 17;
  require<UsageError>(scale > 0 && scale <= 1, "scale {} is outside 0..1", scale);
  const auto scaled = static_cast<Count>(static_cast<double>(graph.vertices) * scale);
  return graph.make(graph.vertices < kSmall ? graph.vertices : std::max<Count>(scaled, 4));
}

}  // namespace plait
