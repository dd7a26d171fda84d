// The parts of the local moves (moves.h) that the CPU and the GPU share. Internal to this room.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/communities/clusters_rule.h"

namespace plait {

inline constexpr std::uint32_t kMostMoveRounds = 16;
// Turns of a round. Vertices whose turn it is look for the best neighbour at once.
inline constexpr std::uint32_t kMoveTurns = 4;

// If only woken rows move (MoveRules), rows with more entries always do: one warp of a GPU looks
// for neighbours that have moved.
inline constexpr EdgeOffset kMostToWake = 4096;

// Returns the turn of a vertex in a round.
PLAIT_HOST_DEVICE constexpr std::uint32_t turn_of(std::uint32_t vertex, std::uint32_t round) {
  return cluster_hash(vertex, round) % kMoveTurns;
}

// Tells whether so few of the vertices that could move have done so that there is no further round.
constexpr bool few_moves(std::uint64_t moves, std::uint64_t movable, double least_share) {
  return static_cast<double>(moves) <= least_share * static_cast<double>(movable);
}

// Tells whether hardly fewer communities have moved at the same time than in the round before: more
// rounds would move them to and fro, and the next level moves them together.
constexpr bool hardly_fewer(std::uint64_t moves, std::uint64_t before) {
  return moves > before / 4 * 3;
}
// The moves that are said to come before the first round.
constexpr std::uint64_t moves_at_first(std::uint64_t communities) { return 2 * communities; }

// Modularity is summed in pieces of so many communities, so that the CPU and the GPU round alike.
inline constexpr std::uint64_t kModularityPiece = 64;

// Returns a piece of it, by the edge ends at each community and those of edges to others.
PLAIT_HOST_DEVICE constexpr double modularity_of_piece(const std::uint64_t* degrees,
                                                       const std::uint64_t* outer,
                                                       std::uint64_t begin, std::uint64_t end,
                                                       double total, double resolution) {
  double sum = 0;
  for (std::uint64_t c = begin; c < end; ++c) {
    const double share = static_cast<double>(degrees[c]) / total;
    sum += static_cast<double>(degrees[c] - outer[c]) / total - resolution * (share * share);
  }
  return sum;
}

// Returns what modularity gains if a community joins others with `others` edge ends, to which
// `edges` lead: a number or a vector of them. It is rounded the same on the CPU and on the GPU, as
// compilers may not contract it. `chance` is the community's edge ends times the resolution over
// the number of all ends.
template <class Number>
PLAIT_HOST_DEVICE constexpr Number gain_of(Number edges, double chance, Number others) {
  return edges - chance * others;
}

// As above for a community with `degree` ends, where `by_chance` is the resolution over the number
// of all ends.
PLAIT_HOST_DEVICE constexpr double merge_gain(std::uint64_t edges, double by_chance,
                                              std::uint64_t degree, std::uint64_t others) {
  return gain_of(static_cast<double>(edges), by_chance * static_cast<double>(degree),
                 static_cast<double>(others));
}

// Tells whether a community must not take a label while others move at the same time: of two
// communities that are alone, the one with the higher label moves; else they would change places.
PLAIT_HOST_DEVICE constexpr bool must_stay(std::uint32_t own, std::uint32_t own_size,
                                           std::uint32_t label, std::uint32_t label_size) {
  return own_size == 1 && label_size == 1 && label > own;
}

// Returns the label that a vertex takes: of its own, the best other one and, if it may leave, the
// one that stands for being alone, which gains nothing; else that is the own one, too. Of equally
// good ones it is the own one, and then the other one.
PLAIT_HOST_DEVICE constexpr std::uint32_t best_label(std::uint32_t own, double stay,
                                                     std::uint32_t other, double gain,
                                                     std::uint32_t alone) {
  if (gain > stay) return gain < 0 && alone != own ? alone : other;
  return stay < 0 ? alone : own;
}

// The same in a refinement, whose vertices may only leave communities in which they are alone. A
// label of one vertex is that vertex's number.
PLAIT_HOST_DEVICE constexpr bool must_stay_refining(std::uint32_t own_size, std::uint32_t label,
                                                    std::uint32_t label_size, std::uint32_t round,
                                                    std::uint32_t turn) {
  return own_size != 1 || (label_size == 1 && turn_of(label, round) == turn);
}

}  // namespace plait
