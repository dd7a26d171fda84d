#include <algorithm>
#include <limits>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/reorder/clusters.h"
#include "plait/reorder/community_rule.h"
#include "plait/reorder/members.h"
#include "plait/reorder/merge.h"
#include "plait/reorder/merge_levels.h"
#include "plait/reorder/methods.h"
#include "plait/reorder/quotient.h"
#include "plait/reorder/votes.h"

namespace plait {
namespace {

constexpr std::size_t kRowGrain = std::size_t{1} << 10, kLabelGrain = std::size_t{1} << 16;

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

// Returns the cluster that a vertex is to be in: its own if its community is the one that most of
// its neighbours are in; else that of most of its neighbours in their community.
template <VertexId V>
std::uint32_t better_cluster(const Csr<V>& graph, std::uint32_t v,
                             std::span<const std::uint32_t> clusters, const ClusterPlaces& places,
                             Votes& votes) {
  Sample sample;
  sample.take(graph.row(v), v, kSortingRound, clusters);
  for (const std::uint32_t cluster : sample.labels()) votes.add(places.community_of(cluster));
  const std::uint32_t own = places.community_of(clusters[v]);
  const std::uint32_t best = votes.take_heaviest(own, kSortingRound);
  if (best == own) return clusters[v];
  for (const std::uint32_t cluster : sample.labels())
    if (places.community_of(cluster) == best) votes.add(cluster);
  return votes.take_heaviest(clusters[v], kSortingRound);
}

// Moves vertices that are in another community than most of their neighbours.
template <VertexId V>
void sort_out(const Csr<V>& graph, Clusters& clusters, const ClusterPlaces& places) {
  const Timed timed("sort out");
  std::vector<std::uint32_t> next(clusters.labels.size());
  parallel_blocks(next.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    Votes votes;
    for (std::size_t v = begin; v < end; ++v)
      next[v] =
          better_cluster(graph, static_cast<std::uint32_t>(v), clusters.labels, places, votes);
  });
  clusters.labels = std::move(next);
}

Reordering sorted_by_place(const Clusters& clusters, const ClusterPlaces& places) {
  const Timed timed("sort vertices");
  const std::size_t n = clusters.labels.size();
  Reordering found{.communities = std::vector<std::uint32_t>(n)};
  std::vector<std::uint32_t> place(n);
  parallel_blocks(n, kLabelGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v) {
      place[v] = places.place_of(clusters.labels[v]);
      found.communities[v] = places.community_of(clusters.labels[v]);
    }
  });
  const Members members = members_of(place, clusters.count);
  found.order = Buffer<std::uint64_t>(n);
  std::copy(members.vertices.begin(), members.vertices.end(), found.order.begin());
  return found;
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
        if (merged.merged) sort_out(graph, clusters, merged.places());
        return sorted_by_place(clusters, merged.places());
      },
      input.graph);
}

}  // namespace plait
