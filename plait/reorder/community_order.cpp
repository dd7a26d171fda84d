#include <algorithm>
#include <limits>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/communities/clusters.h"
#include "plait/communities/members.h"
#include "plait/communities/moves.h"
#include "plait/communities/quotient.h"
#include "plait/communities/votes.h"
#include "plait/reorder/community_rule.h"
#include "plait/reorder/merge_levels.h"
#include "plait/reorder/methods.h"

namespace plait {
namespace {

constexpr std::size_t kOrderGrain = std::size_t{1} << 10, kLabelGrain = std::size_t{1} << 16;

// The cluster of each vertex, and how many there are.
struct Clusters {
  std::vector<std::uint32_t> labels;
  std::uint32_t count = 0;
};

template <VertexId V>
Clusters clusters_of(const Csr<V>& graph) {
  const Timed timed("find clusters");
  const std::uint64_t n = graph.vertices();
  const auto offsets = graph.offsets.span();
  Clusters found{find_clusters(offsets.first(n), offsets.subspan(1, n), graph.neighbours.data(),
                               kCommunityRounds)};
  found.count = make_dense(found.labels);
  return found;
}

// Renumbers the clusters and merges them further.
MergedClusters merge_all(Clusters& clusters, const ReorderInput& input) {
  Quotient graph = timed("quotient graph", [&] {
    Quotient quotient = quotient_of(input.graph, input.symmetric, clusters.labels, clusters.count);
    put_joined_first(clusters.labels, quotient);
    return quotient;
  });
  const Timed timed("merge clusters");
  MergeLevels levels(graph.communities(), modularity_of(graph));
  merge_rest(std::move(graph), levels);
  return levels.result();
}

// Returns the community of each vertex.
std::vector<std::uint32_t> communities_of(const Clusters& clusters, const ClusterPlaces& places) {
  std::vector<std::uint32_t> communities(clusters.labels.size());
  parallel_blocks(communities.size(), kLabelGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v)
      communities[v] = places.community_of(clusters.labels[v]);
  });
  return communities;
}

// Moves each vertex to the community of most of its neighbours: to the cluster in which most of
// those are.
template <VertexId V>
void sort_out(const Csr<V>& graph, std::vector<std::uint32_t>& clusters,
              std::vector<std::uint32_t>& communities) {
  const Timed timed("sort out");
  std::vector<std::uint32_t> next_clusters(clusters.size()), next_communities(clusters.size());
  const auto row_of = [&](std::size_t v) { return graph.row(v); };
  const auto decide = [&](std::size_t v, const Votes& votes) {
    const std::uint32_t best = votes.heaviest(communities[v], kSortingRound);
    next_clusters[v] = clusters[v];
    next_communities[v] = best;
    if (best == communities[v]) return;
    Votes inside;
    ask(inside, graph.row(v), static_cast<std::uint32_t>(v), kSortingRound,
        [&](V u) { return communities[u] == best ? clusters[u] : Votes::kNone; });
    next_clusters[v] = inside.heaviest(clusters[v], kSortingRound);
  };
  parallel_blocks(clusters.size(), kOrderGrain, [&](std::size_t begin, std::size_t end) {
    ask_each(
        begin, end, kSortingRound, row_of, [&](V u) { return communities[u]; }, decide);
  });
  clusters = std::move(next_clusters);
  communities = std::move(next_communities);
}

Buffer<std::uint64_t> sorted_by_place(const Clusters& clusters, const ClusterPlaces& places) {
  const Timed timed("sort vertices");
  return std::move(members_of<std::uint64_t>(
                       static_cast<std::uint32_t>(clusters.labels.size()), clusters.count,
                       [&](std::uint32_t v) { return places.place_of(clusters.labels[v]); })
                       .vertices);
}

}  // namespace

void require_community_numbers(std::uint64_t vertices) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
  require(vertices <= kMost,
          "communities need at most {} vertices, but the graph has {}; use another order", kMost,
          vertices);
}

Reordering order_by_communities(const ReorderInput& input) {
  if (vertex_count(input.graph) == 0) return {};
  require_community_numbers(vertex_count(input.graph));
  return std::visit(
      [&](const auto& graph) -> Reordering {
        Clusters clusters = clusters_of(graph);
        const MergedClusters merged = merge_all(clusters, input);
        Reordering found{.communities = communities_of(clusters, merged.places())};
        if (merged.merged) sort_out(graph, clusters.labels, found.communities);
        found.order = sorted_by_place(clusters, merged.places());
        return found;
      },
      input.graph);
}

}  // namespace plait
