// Clusters merged level after level into a dendrogram. Internal to this room.
//
// The rule is the same for quotients on the CPU and on the GPU: the loop over levels asks it
// whether to go on and at which resolution, and tells it what was merged.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/base/host_device.h"
#include "plait/communities/quotient.h"
#include "plait/reorder/dendrogram.h"

namespace plait {

// The places and communities of clusters. Clusters 0 .. joined - 1 have edges to others; each of
// the rest is a community of its own, after all others. The arrays are the CPU's or the GPU's.
struct ClusterPlaces {
  const std::uint32_t* place;         // of a joined cluster in depth-first order
  const std::uint32_t* community;     // of a joined cluster
  std::uint32_t joined, communities;  // clusters, and communities in which they lie

  PLAIT_HOST_DEVICE std::uint32_t place_of(std::uint32_t cluster) const {
    return cluster < joined ? place[cluster] : cluster;
  }
  PLAIT_HOST_DEVICE std::uint32_t community_of(std::uint32_t cluster) const {
    return cluster < joined ? community[cluster] : communities + (cluster - joined);
  }
};

struct MergedClusters {
  std::vector<std::uint32_t> place, community;  // of each joined cluster
  bool merged = false;                          // false: each is a community of its own
  std::uint32_t communities = 0;

  ClusterPlaces places() const {
    return {place.data(), community.data(), static_cast<std::uint32_t>(place.size()), communities};
  }
};

// Levels are merged first as long as modularity rises, then at lower resolutions until components
// are whole, so that communities with many edges in common stand together.
class MergeLevels {
 public:
  MergeLevels(std::uint32_t clusters, double modularity)
      : clusters_(clusters), count_(clusters), most_(modularity) {}

  // Tells whether a quotient with so many entries is to be merged, and at which resolution.
  bool go_on(EdgeOffset entries) const { return entries > 0 && resolution_ >= kLowestResolution; }
  double resolution() const { return resolution_; }
  // Notes the community of the next level that each community of the last level lies in, `count`
  // communities in all, and their modularity.
  void add(std::vector<std::uint32_t> parents, std::uint32_t count, double modularity);
  // Notes that no communities merged.
  void add_nothing() { resolution_ *= kLowerResolution; }

  // Returns the clusters of all levels so far.
  MergedClusters result() const;

 private:
  // A level on which fewer communities merge lets levels of lower resolution merge, too; beyond the
  // lowest resolution there is nothing to gain.
  static constexpr double kMergedShare = 0.02, kLowerResolution = 0.25, kLowestResolution = 1e-6;

  Dendrogram levels_;
  std::uint32_t clusters_, count_;
  std::size_t best_ = 0;  // levels up to the one of highest modularity
  double resolution_ = 1, most_;
};

// Merges the rest of the levels on the CPU. Throws DoesNotFitError.
void merge_rest(Quotient graph, MergeLevels& levels);

}  // namespace plait
