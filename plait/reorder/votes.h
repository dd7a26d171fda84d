// Votes of a row's neighbours on the CPU. Internal to this room.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "plait/reorder/clusters_rule.h"

namespace plait {

// Votes for at most kClusterSample labels: a hash table that only its used places are cleared of.
class Votes {
 public:
  void add(std::uint32_t label) {
    std::uint32_t slot = label * 0x9E3779B1u >> (32 - kBits);
    while (count_[slot] != 0 && label_[slot] != label) slot = (slot + 1) % kSlots;
    if (count_[slot]++ == 0) label_[slot] = label, used_[size_++] = slot;
  }

  // Returns the heaviest label, and forgets all votes. A row's own label, which nobody may have
  // voted for, has one more vote if anybody has.
  std::uint32_t take_heaviest(std::uint32_t own, std::uint32_t round) {
    std::uint32_t best = own;
    std::uint64_t most = 0;
    for (std::uint32_t i = 0; i < size_; ++i) {
      const std::uint32_t label = label_[used_[i]];
      const std::uint32_t votes = std::exchange(count_[used_[i]], 0) + (label == own);
      if (votes < most >> 32) continue;
      const std::uint64_t weight = cluster_weight(votes, label, round);
      if (weight > most || (weight == most && label < best)) most = weight, best = label;
    }
    size_ = 0;
    return best;
  }

 private:
  static constexpr std::uint32_t kBits = 7, kSlots = 1u << kBits;
  static_assert(kSlots > 2 * kClusterSample);
  std::array<std::uint32_t, kSlots> label_, count_{};
  std::array<std::uint32_t, kClusterSample> used_;
  std::uint32_t size_ = 0;
};

// The labels of the neighbours that a row asks in a round. All are loaded before any is counted, so
// that the processor waits for them at once.
class Sample {
 public:
  template <VertexId V>
  void take(std::span<const V> neighbours, std::uint32_t row, std::uint32_t round,
            std::span<const std::uint32_t> labels) {
    size_ = 0;
    const EdgeOffset degree = neighbours.size();
    for (std::uint32_t k = 0; k < std::min<EdgeOffset>(degree, kClusterSample); ++k) {
      const V neighbour = neighbours[cluster_sample(k, degree, row, round)];
      if (neighbour < labels.size()) labels_[size_++] = labels[neighbour];
    }
  }
  std::span<const std::uint32_t> labels() const { return std::span(labels_).first(size_); }

 private:
  std::array<std::uint32_t, kClusterSample> labels_;
  std::uint32_t size_ = 0;
};

}  // namespace plait
