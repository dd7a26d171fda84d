#include <limits>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/reorder/clusters.h"
#include "plait/reorder/dendrogram.h"
#include "plait/reorder/merge.h"
#include "plait/reorder/methods.h"
#include "plait/reorder/quotient.h"
#include "plait/reorder/votes.h"

namespace plait {
namespace {

// Rounds of label propagation: enough for labels to meet inside communities, too few for them to
// run through several. Later rounds would only move single vertices, which sort_out() does.
constexpr int kRounds = 4;
constexpr std::uint32_t kSortingRounds = 1;

// A level on which fewer communities merge lets those of lower resolution merge, too; beyond the
// lowest one there is nothing to gain.
constexpr double kMergedShare = 0.02, kLowerResolution = 0.25, kLowestResolution = 1e-6;

constexpr std::size_t kRowGrain = std::size_t{1} << 10;

template <VertexId V>
std::vector<std::uint32_t> clusters_of(const Csr<V>& graph) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
  const std::uint64_t n = graph.vertices();
  require(n <= kMost,
          "communities need at most {} vertices, but the graph has {}; use another order", kMost,
          n);
  const auto offsets = graph.offsets.span();
  return find_clusters(offsets.first(n), offsets.subspan(1, n), graph.neighbours.data(), kRounds);
}

// A dendrogram, and its level of highest modularity.
struct Found {
  Dendrogram levels;
  std::size_t best = 0;
};

// Merges clusters further until components are whole: first as long as modularity rises, then at
// lower resolutions, so that communities with many edges in common stand together.
Found merge_all(std::vector<std::uint32_t> labels, const ReorderInput& input) {
  Found found;
  std::uint32_t count = make_dense(labels);
  Quotient graph = quotient_of(input.graph, input.symmetric, labels, count);
  found.levels.push_back(std::move(labels));
  double resolution = 1, most = modularity_of(graph);
  while (!graph.neighbours.empty() && resolution >= kLowestResolution) {
    labels = merge(graph, resolution);
    count = make_dense(labels);
    const std::uint32_t merged = graph.communities() - count;
    if (merged > 0) {
      graph = quotient_of(graph, labels, count);
      found.levels.push_back(std::move(labels));
      const double modularity = modularity_of(graph);
      if (modularity > most) most = modularity, found.best = found.levels.size() - 1;
    }
    if (merged <= kMergedShare * (merged + count)) resolution *= kLowerResolution;
  }
  return found;
}

// Returns the cluster that a vertex is to be in: its own if its community is the one that most of
// its neighbours are in; else that of most of its neighbours in their community.
template <VertexId V>
std::uint32_t better_cluster(const Csr<V>& graph, std::uint32_t v, std::uint32_t round,
                             std::span<const std::uint32_t> clusters,
                             std::span<const std::uint32_t> community_of, Votes& votes) {
  Sample sample;
  sample.take(graph.row(v), v, round, clusters);
  for (const std::uint32_t cluster : sample.labels()) votes.add(community_of[cluster]);
  const std::uint32_t own = community_of[clusters[v]];
  const std::uint32_t best = votes.take_heaviest(own, round);
  if (best == own) return clusters[v];
  for (const std::uint32_t cluster : sample.labels())
    if (community_of[cluster] == best) votes.add(cluster);
  return votes.take_heaviest(clusters[v], round);
}

// Moves vertices that are in another community than most of their neighbours.
template <VertexId V>
void sort_out(const Csr<V>& graph, Found& found) {
  std::vector<std::uint32_t>& clusters = found.levels[0];
  const Dendrogram above(found.levels.begin() + 1,
                         found.levels.begin() + static_cast<std::ptrdiff_t>(found.best) + 1);
  if (above.empty()) return;
  const std::vector<std::uint32_t> community_of = communities_of_level(above, above.size() - 1);
  std::vector<std::uint32_t> next(clusters.size());
  for (std::uint32_t round = 1; round <= kSortingRounds; ++round) {
    parallel_blocks(clusters.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
      Votes votes;
      for (std::size_t v = begin; v < end; ++v)
        next[v] = better_cluster(graph, static_cast<std::uint32_t>(v), kRounds + round, clusters,
                                 community_of, votes);
    });
    clusters.swap(next);
  }
}

}  // namespace

Reordering order_by_communities(const ReorderInput& input) {
  if (vertex_count(input.graph) == 0) return {};
  return std::visit(
      [&](const auto& graph) -> Reordering {
        Found found = merge_all(clusters_of(graph), input);
        sort_out(graph, found);
        return {.order = depth_first_order(found.levels),
                .communities = communities_of_level(found.levels, found.best)};
      },
      input.graph);
}

}  // namespace plait
