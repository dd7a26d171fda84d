#include "plait/reorder/metis_graph.h"

#include <limits>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/memory.h"

namespace plait {
namespace {

template <VertexId V>
MetisGraph copy_of(const Csr<V>& graph, const char* remedy) {
  const auto limit = static_cast<std::uint64_t>(std::numeric_limits<idx_t>::max());
  const std::uint64_t n = graph.vertices();
  require(n < limit && graph.edges() < limit / 2,
          "METIS takes at most {} vertices and edges, but the graph has {} and {}; {}", limit, n,
          graph.edges(), remedy);
  require_memory((2 * graph.edges() + 2 * n) * sizeof(idx_t), "the graph's copy for METIS");

  const auto each_edge = [&](auto&& take) {
    for (std::uint64_t i = 0; i < n; ++i)
      for (const V j : graph.row(i))
        if (j != i) take(i, std::uint64_t{j});
  };
  MetisGraph copy{Buffer<idx_t>(n + 1, 0), {}, Buffer<idx_t>(n)};
  each_edge([&](std::uint64_t i, std::uint64_t j) {
    ++copy.offsets[i + 1];
    ++copy.offsets[j + 1];
  });
  for (std::uint64_t i = 0; i < n; ++i) copy.offsets[i + 1] += copy.offsets[i];
  copy.neighbours = Buffer<idx_t>(static_cast<std::size_t>(copy.offsets[n]));
  std::vector<idx_t> cursor(copy.offsets.begin(), copy.offsets.end() - 1);
  each_edge([&](std::uint64_t i, std::uint64_t j) {
    copy.neighbours[static_cast<std::size_t>(cursor[i]++)] = static_cast<idx_t>(j);
    copy.neighbours[static_cast<std::size_t>(cursor[j]++)] = static_cast<idx_t>(i);
  });
  for (std::uint64_t i = 0; i < n; ++i)
    copy.vertex_weights[i] = static_cast<idx_t>(graph.degree(i) + 1);
  return copy;
}

}  // namespace

MetisGraph metis_graph(const AnyCsr& any, const char* remedy) {
  return std::visit([&](const auto& graph) { return copy_of(graph, remedy); }, any);
}

}  // namespace plait
