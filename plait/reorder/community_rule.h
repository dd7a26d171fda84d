// The parts of the order by communities that the CPU and the GPU share. Internal to this room.
#pragma once

#include <cstdint>

namespace plait {

// Rounds of label propagation: enough for labels to meet inside communities, too few for them to
// run through several. Later rounds would only move single vertices, which the round after them
// does, in which vertices move that are in another community than most of their neighbours.
inline constexpr int kCommunityRounds = 4;
inline constexpr std::uint32_t kSortingRound = kCommunityRounds + 1;

// Throws Error if there are 2^32 - 1 vertices or more.
void require_community_numbers(std::uint64_t vertices);

}  // namespace plait
