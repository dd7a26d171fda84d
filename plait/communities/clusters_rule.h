// The parts of find_clusters that the CPU and the GPU share.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"

namespace plait {

inline constexpr std::uint32_t kClusterSample = 32;  // neighbours per row: a warp's lanes

// Returns a hash of two numbers, or of a vector of them and one.
template <class Number>
PLAIT_HOST_DEVICE constexpr Number cluster_hash(Number a, std::uint32_t b) {
  Number h = (a * 0x9E3779B1u) ^ (b * 0x85EBCA77u);
  h ^= h >> 15;
  h *= 0xC2B2AE3Du;
  return h ^ h >> 13;
}

// Returns the place, in its row, of the k-th neighbour of the sample of a row with `degree`
// neighbours: one from each of 32 equal stretches of the list, or all of a shorter list.
PLAIT_HOST_DEVICE constexpr EdgeOffset cluster_sample(std::uint32_t k, EdgeOffset degree,
                                                      std::uint32_t row, std::uint32_t round) {
  if (degree <= kClusterSample) return k;
  return (k * degree + cluster_hash(row, round) % degree) / kClusterSample;
}

// Returns the weight of a label with `votes` votes in a round. The heaviest label wins; no two
// labels weigh the same.
PLAIT_HOST_DEVICE constexpr std::uint64_t cluster_weight(std::uint32_t votes, std::uint32_t label,
                                                         std::uint32_t round) {
  return std::uint64_t{votes} << 32 | cluster_hash(label, round);
}

// Returns the label that has a hash in a round: there is just one, so that of two labels one is
// always heavier.
constexpr std::uint32_t label_of_hash(std::uint32_t hash, std::uint32_t round) {
  hash ^= hash >> 13 ^ hash >> 26;
  hash *= 0xA89ED915u;
  hash ^= hash >> 15 ^ hash >> 30;
  return (hash ^ (round * 0x85EBCA77u)) * 0x0E8B2F51u;
}

}  // namespace plait
