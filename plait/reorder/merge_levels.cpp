#include "plait/reorder/merge_levels.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plait/communities/moves.h"

namespace plait {

void MergeLevels::add(std::vector<std::uint32_t> parents, std::uint32_t count, double modularity) {
  const std::uint32_t merged = count_ - count;
  levels_.push_back(std::move(parents));
  if (modularity > most_) most_ = modularity, best_ = levels_.size();
  if (merged <= kMergedShare * count_) resolution_ *= kLowerResolution;
  count_ = count;
}

MergedClusters MergeLevels::result() const {
  MergedClusters found;
  found.merged = best_ > 0;
  if (levels_.empty()) {
    found.place.resize(clusters_);
    std::iota(found.place.begin(), found.place.end(), 0u);
  } else {
    const std::vector<std::uint64_t> places = depth_first_places(levels_);
    found.place.assign(places.begin(), places.end());
  }
  found.community.resize(clusters_);
  std::iota(found.community.begin(), found.community.end(), 0u);
  if (found.merged) found.community = communities_of_level(levels_, best_ - 1);
  for (const std::uint32_t community : found.community)
    found.communities = std::max(found.communities, community + 1);
  return found;
}

void merge_rest(Quotient graph, MergeLevels& levels) {
  while (levels.go_on(graph.neighbours.size())) {
    std::vector<std::uint32_t> labels = merge(graph, levels.resolution());
    const std::uint32_t count = make_dense(labels);
    if (count == graph.communities()) {
      levels.add_nothing();
      continue;
    }
    graph = quotient_of(graph.rows(), labels, count);
    levels.add(std::move(labels), count, modularity_of(graph));
  }
}

}  // namespace plait
