// Communities of communities. Internal to this room.
#pragma once

#include <cstdint>
#include <vector>

namespace plait {

// levels[0] has the community of each cluster, levels[k] the community of level k in which each
// community of level k - 1 lies. The communities of a level are numbered from 0 without gaps.
using Dendrogram = std::vector<std::vector<std::uint32_t>>;

// Returns the place of each cluster in depth-first order, which keeps each community of each level
// together. Children of a community are in ascending order. There must be a level.
std::vector<std::uint64_t> depth_first_places(const Dendrogram& dendrogram);

// Returns the community of level `level` in which each cluster lies.
std::vector<std::uint32_t> communities_of_level(const Dendrogram& dendrogram, std::size_t level);

}  // namespace plait
