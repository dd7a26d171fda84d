// The parts of the local moves (merge.h) that the CPU and the GPU share. Internal to this room.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/reorder/clusters_rule.h"

namespace plait {

inline constexpr std::uint32_t kMostMoveRounds = 16;
// Turns of a round. Communities whose turn it is look for the best neighbour at once.
inline constexpr std::uint32_t kMoveTurns = 4;

// Tells whether it is a community's turn.
PLAIT_HOST_DEVICE constexpr bool is_turn(std::uint32_t community, std::uint32_t round,
                                         std::uint32_t turn) {
  return cluster_hash(community, round) % kMoveTurns == turn;
}

// Tells whether so few of the communities have moved that there is no further round.
constexpr bool few_moves(std::uint64_t moves, std::uint64_t communities) {
  return moves <= communities / 200;
}

// Returns what modularity gains if a community with `degree` edge ends joins others with `others`
// ends, to which `edges` lead. It is rounded the same on the CPU and on the GPU, as compilers may
// not contract it. `by_chance` is the resolution over the number of all ends.
PLAIT_HOST_DEVICE constexpr double merge_gain(std::uint64_t edges, double by_chance,
                                              std::uint64_t degree, std::uint64_t others) {
  return static_cast<double>(edges) -
         by_chance * static_cast<double>(degree) * static_cast<double>(others);
}

// Tells whether a community must not take a label: of two communities that are alone, the one with
// the higher label moves; else they would change places.
PLAIT_HOST_DEVICE constexpr bool must_stay(std::uint32_t own, std::uint32_t own_size,
                                           std::uint32_t label, std::uint32_t label_size) {
  return own_size == 1 && label_size == 1 && label > own;
}

}  // namespace plait
