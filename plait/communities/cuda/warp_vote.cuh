// Votes of a row's neighbours by a warp: the rule of votes.h.
#pragma once

#include "plait/base/cuda/warp.cuh"
#include "plait/base/ids.h"
#include "plait/communities/clusters_rule.h"

namespace plait {

// It stands where there is no label: for a lane that does not vote, and in a free slot.
inline constexpr std::uint32_t kNoLabel = 0xffffffffu;

// Returns the heaviest of the labels for which the lanes vote; `own`, which has one more vote, if
// there are no votes. All lanes call it and receive the result.
__device__ inline std::uint32_t heaviest_label(std::uint32_t label, std::uint32_t own,
                                               std::uint32_t round) {
  const std::uint32_t votes = __popc(__match_any_sync(kAll, label)) + (label == own);
  std::uint64_t weight = label == kNoLabel ? 0 : cluster_weight(votes, label, round);
  for (int distance = 16; distance > 0; distance /= 2) {
    const std::uint64_t other = __shfl_xor_sync(kAll, weight, distance);
    const std::uint32_t other_label = __shfl_xor_sync(kAll, label, distance);
    if (other > weight || (other == weight && other_label < label))
      weight = other, label = other_label;
  }
  return weight == 0 ? own : label;
}

// Returns the label of the neighbour that this lane asks in a round, or kNoLabel.
__device__ inline std::uint32_t sampled_label(const EdgeOffset* begin, const EdgeOffset* end,
                                              const Slot* columns, std::uint64_t rows,
                                              std::uint64_t row, std::uint32_t round,
                                              const std::uint32_t* labels) {
  const std::uint32_t lane = threadIdx.x % kWarp;
  const EdgeOffset first = begin[row], degree = end[row] - first;
  if (lane >= degree) return kNoLabel;
  const auto number = static_cast<std::uint32_t>(row);
  const Slot neighbour = columns[first + cluster_sample(lane, degree, number, round)];
  return neighbour < rows ? labels[neighbour] : kNoLabel;
}

}  // namespace plait
