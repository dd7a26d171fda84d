#include <limits>

#include "plait/base/error.h"
#include "plait/reorder/clusters.h"
#include "plait/reorder/dendrogram.h"
#include "plait/reorder/merge.h"
#include "plait/reorder/methods.h"
#include "plait/reorder/quotient.h"

namespace plait {
namespace {

// A level on which fewer communities merge lets those of lower resolution merge, too; beyond the
// lowest one there is nothing to gain.
constexpr double kMergedShare = 0.02, kLowerResolution = 0.25, kLowestResolution = 1e-6;

std::vector<std::uint32_t> clusters_of(const AnyCsr& any) {
  return std::visit(
      [](const auto& graph) {
        constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
        const std::uint64_t n = graph.vertices();
        require(n <= kMost,
                "communities need at most {} vertices, but the graph has {}; use another order",
                kMost, n);
        const auto offsets = graph.offsets.span();
        return find_clusters(offsets.first(n), offsets.subspan(1, n), graph.neighbours.data());
      },
      any);
}

// A dendrogram, and its level of highest modularity.
struct Found {
  Dendrogram levels;
  std::size_t best = 0;
};

// Merges the labels of vertices further until components are whole: first as long as modularity
// rises, then at lower resolutions, so that communities with many edges in common stand together.
Found dendrogram_of(const ReorderInput& input) {
  Found found;
  std::vector<std::uint32_t> labels = clusters_of(input.graph);
  std::uint32_t count = make_dense(labels);
  Quotient graph = quotient_of(input.graph, input.symmetric, labels, count);
  found.levels.push_back(std::move(labels));
  double resolution = 1;
  while (!graph.neighbours.empty() && resolution >= kLowestResolution) {
    labels = merge(graph, resolution);
    count = make_dense(labels);
    const std::uint32_t merged = graph.communities() - count;
    if (merged > 0) {
      graph = quotient_of(graph, labels, count);
      found.levels.push_back(std::move(labels));
      if (resolution == 1) found.best = found.levels.size() - 1;
    }
    if (merged <= kMergedShare * (merged + count)) resolution *= kLowerResolution;
  }
  return found;
}

}  // namespace

Reordering order_by_communities(const ReorderInput& input) {
  if (vertex_count(input.graph) == 0) return {};
  const Found found = dendrogram_of(input);
  return {.order = depth_first_order(found.levels),
          .communities = communities_of_level(found.levels, found.best)};
}

}  // namespace plait
