// The arrays that one turn of the local moves (communities/moves.h) reads and writes, and the
// choice of the label that a community moves to. Internal to this room.
#pragma once

#include <cstdint>

#include "plait/base/cuda/warp.cuh"
#include "plait/base/ids.h"
#include "plait/communities/cuda/warp_vote.cuh"
#include "plait/communities/moves_rule.h"
#include "plait/communities/weighted_rows.h"

namespace plait {

// Pointers are to memory of the GPU.
struct Moves {
  WeightedRows graph;
  double by_chance;
  const std::uint32_t* labels;         // by vertex
  const std::uint64_t* label_degrees;  // edge ends, by label
  const std::uint32_t* label_sizes;    // vertices, by label
  const std::uint8_t* asleep;          // by row: 1 if it does not move in this round; null: none
  bool may_leave;                      // as MoveRules
  const std::uint32_t* within;         // as MoveRules
  std::uint32_t* next;                 // the label that each row chooses in its turn
  std::uint32_t round, turn;

  __device__ std::uint64_t entries(std::uint32_t row) const {
    return graph.end[row] - graph.begin[row];
  }
  // Returns the turn of a row; kMoveTurns if it has none in this round. In a refinement a vertex
  // that is not alone stays so, and no other joins one whose turn it is: the answer is the same
  // before and while vertices of a turn move.
  __device__ std::uint32_t turn_of_row(std::uint32_t row) const {
    if (asleep != nullptr && asleep[row] != 0) return kMoveTurns;
    const std::uint32_t vertex = graph.vertex(row);
    if (within != nullptr && label_sizes[labels[vertex]] != 1) return kMoveTurns;
    return turn_of(vertex, round);
  }
  __device__ bool moves(std::uint32_t row) const { return turn_of_row(row) == turn; }
  // Returns the label to which an entry of a vertex's row draws it; kNoLabel if it draws nowhere.
  __device__ std::uint32_t label(std::uint32_t vertex, EdgeOffset e) const {
    if (!graph.draws(vertex, e)) return kNoLabel;
    const std::uint32_t neighbour = graph.neighbours[e];
    if (within != nullptr && within[vertex] != within[neighbour]) return kNoLabel;
    return labels[neighbour];
  }
  // Returns the label under which a vertex may be alone; its own one if there is none.
  __device__ std::uint32_t alone(std::uint32_t vertex, std::uint32_t own) const {
    return may_leave && within == nullptr && label_sizes[vertex] == 0 ? vertex : own;
  }
  // Tells whether a vertex must not take a label.
  __device__ bool bars(std::uint32_t own, std::uint32_t own_size, std::uint32_t label) const {
    const std::uint32_t size = label_sizes[label];
    return within != nullptr ? must_stay_refining(own_size, label, size, round, turn)
                             : must_stay(own, own_size, label, size);
  }
};

// A label and what it gains. Of labels that gain equally the lowest is the best.
struct Best {
  double value;
  std::uint32_t label;

  __device__ void take(double other, std::uint32_t other_label) {
    if (other_label == kNoLabel) return;
    if (label == kNoLabel || other > value || (other == value && other_label < label))
      value = other, label = other_label;
  }
  // Makes each lane's the best of its warp. All lanes call it.
  __device__ void take_of_warp() {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      const double other = __shfl_xor_sync(kAll, value, distance);
      const std::uint32_t other_label = __shfl_xor_sync(kAll, label, distance);
      take(other, other_label);
    }
  }
  // Makes thread 0's the best of its block, which has so many warps. All threads call it, with
  // shared memory of one place per warp.
  __device__ void take_of_block(Best* of_warps, unsigned warps) {
    take_of_warp();
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = *this;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (unsigned w = 1; w < warps; ++w) take(of_warps[w].value, of_warps[w].label);
  }
};

// The gains of one vertex.
struct Gains {
  const Moves& m;
  std::uint32_t vertex, own, own_size;
  std::uint64_t degree;

  __device__ Gains(const Moves& moves, std::uint32_t row)
      : m(moves),
        vertex(moves.graph.vertex(row)),
        own(moves.labels[vertex]),
        own_size(moves.label_sizes[own]),
        degree(moves.graph.degrees[vertex]) {}
  // Takes a label to which `edges` lead, if the vertex may move there.
  __device__ void take(Best& best, std::uint32_t label, std::uint64_t edges) const {
    if (label == own || m.bars(own, own_size, label)) return;
    best.take(merge_gain(edges, m.by_chance, degree, m.label_degrees[label]), label);
  }
  // Returns the label to move to, given the best other one and the edges to the own one.
  __device__ std::uint32_t choose(const Best& best, std::uint64_t own_edges) const {
    const double stay = merge_gain(own_edges, m.by_chance, degree, m.label_degrees[own] - degree);
    const double gain = best.label == kNoLabel ? -INFINITY : best.value;
    return best_label(own, stay, best.label, gain, m.alone(vertex, own));
  }
};

}  // namespace plait
