// The order in which blocks of rows cross between ranks, so that each rank has one sender at a
// time.
//
// With R ranks there are R - 1 turns, 1 to R - 1. In turn t, rank r sends to rank r - t and
// receives from rank r + t, counted round. The turns of all ranks agree: whoever sends to r is the
// rank that r receives from. A rank's halo has the blocks in the order of its turns.
#pragma once

namespace plait {

// Ranks are 0 to ranks - 1, and turns 1 to ranks - 1.
constexpr int receiver_in_turn(int rank, int turn, int ranks) {
  return (rank + ranks - turn) % ranks;
}
constexpr int sender_in_turn(int rank, int turn, int ranks) { return (rank + turn) % ranks; }

// The most parts in which one block arrives. Each part has a signal of its own, and a rank has 64
// signals at each other rank. The last signal ends the step.
inline constexpr int kMostBlockParts = 63;

}  // namespace plait
