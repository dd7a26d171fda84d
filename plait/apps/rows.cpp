#include "plait/apps/rows.h"

#include <limits>

#include "plait/base/parallel.h"
#include "plait/base/row_grain.h"

namespace plait {

void require_weights(const Dataset& dataset, const std::string& otherwise) {
  require<UsageError>(is_weighted(dataset.graph) || dataset.edges() == 0, "{} has no weights; {}",
                      dataset.name, otherwise);
  constexpr float kMost = std::numeric_limits<float>::max();
  std::visit(
      [&](const auto& graph) {
        const EdgeOffset e = first_where(graph.edges(), kRowGrain, [&](std::size_t i) {
          return !(graph.weights[i] >= 0 && graph.weights[i] <= kMost);
        });
        if (e == graph.edges()) return;
        const auto after = std::ranges::upper_bound(graph.offsets.span(), e);
        const auto to = static_cast<std::uint64_t>(after - graph.offsets.span().begin()) - 1;
        require<UsageError>(
            false, "the edge from vertex {} to vertex {} weighs {}, which is not in 0..{}",
            dataset.number(graph.neighbours[e]), dataset.number(to), graph.weights[e], kMost);
      },
      dataset.graph);
}

void require_vertex(const Dataset& dataset, std::uint64_t number) {
  require<UsageError>(dataset.vertices() > 0, "{} has no vertices, so that none can be the source",
                      dataset.name);
  require<UsageError>(number < dataset.vertices(), "source {} is not in 0..{}", number,
                      dataset.vertices() - 1);
}

std::vector<std::vector<std::uint64_t>> simple_neighbours(const Dataset& dataset) {
  std::vector<std::vector<std::uint64_t>> lists(dataset.vertices());
  std::visit(
      [&](const auto& graph) {
        for (std::uint64_t v = 0; v < graph.vertices(); ++v)
          for (const auto u : graph.row(v)) {
            if (u == v) continue;
            lists[dataset.number(v)].push_back(dataset.number(u));
            lists[dataset.number(u)].push_back(dataset.number(v));
          }
      },
      dataset.graph);
  for (auto& list : lists) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return lists;
}

}  // namespace plait
