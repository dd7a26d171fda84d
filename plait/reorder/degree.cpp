#include <algorithm>
#include <atomic>
#include <numeric>

#include "plait/base/parallel.h"
#include "plait/base/row_grain.h"
#include "plait/reorder/methods.h"

namespace plait {
namespace {

// Returns the number of edges at either end of each vertex; of a symmetric graph, half of it.
std::vector<EdgeOffset> edges_at(const ReorderInput& input) {
  return std::visit(
      [&](const auto& graph) {
        std::vector<EdgeOffset> edges(graph.vertices());
        parallel_blocks(edges.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) {
            const auto add = [&](std::uint64_t v, EdgeOffset count) {
              std::atomic_ref(edges[v]).fetch_add(count, std::memory_order_relaxed);
            };
            add(i, graph.degree(i));
            if (input.symmetric) continue;
            for (const auto j : graph.row(i)) add(j, 1);
          }
        });
        return edges;
      },
      input.graph);
}

}  // namespace

Reordering order_by_degree(const ReorderInput& input) {
  const std::vector<EdgeOffset> edges = edges_at(input);
  Reordering found{.order = Buffer<std::uint64_t>(edges.size())};
  std::iota(found.order.begin(), found.order.end(), std::uint64_t{0});
  std::ranges::stable_sort(found.order, std::ranges::greater{},
                           [&](std::uint64_t v) { return edges[v]; });
  return found;
}

}  // namespace plait
