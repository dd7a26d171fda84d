// Votes of rows' neighbours on the CPU.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "plait/communities/clusters_rule.h"

namespace plait {

// At most kClusterSample votes. They are counted by comparing each with all others, eight at a
// time, without branches: no processor could predict which label is the heaviest.
class Votes {
 public:
  // A vote for no label.
  static constexpr std::uint32_t kNone = 0xffffffffu;

  // Replaces the votes by label_of(k) for all k < count.
  void take(std::uint32_t count, auto&& label_of) {
    std::uint32_t size = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
      labels_[size] = label_of(k);
      size += labels_[size] != kNone;
    }
    std::fill_n(labels_.begin() + size, kLanes, kNone);
    size_ = size;
  }

  // Returns the heaviest label. A row's own label, which nobody may have voted for, has one more
  // vote if anybody has.
  [[gnu::always_inline]] std::uint32_t heaviest(std::uint32_t own, std::uint32_t round) const {
    if (size_ == 0) return own;
    switch ((size_ - 1) / kLanes) {
      case 0:
        return heaviest_of<1>(own, round);
      case 1:
        return heaviest_of<2>(own, round);
      case 2:
        return heaviest_of<3>(own, round);
      default:
        return heaviest_of<4>(own, round);
    }
  }

 private:
  static constexpr std::uint32_t kLanes = 8;
  static_assert(kClusterSample == 4 * kLanes);
  typedef std::uint32_t Lanes __attribute__((vector_size(4 * kLanes)));
  // Signed, which processors compare in one instruction.
  typedef std::int64_t Weights __attribute__((vector_size(4 * kLanes)));

  // The labels lie in so many vectors. The last vector may end with kNone.
  template <std::uint32_t kVectors>
  std::uint32_t heaviest_of(std::uint32_t own, std::uint32_t round) const {
    Lanes labels[kVectors], votes[kVectors];
    std::memcpy(labels, labels_.data(), sizeof labels);
    for (std::uint32_t v = 0; v < kVectors; ++v) votes[v] = -Lanes(labels[v] == own);
    for (std::uint32_t k = 0; k < size_; ++k)
      for (std::uint32_t v = 0; v < kVectors; ++v) votes[v] -= Lanes(labels[v] == labels_[k]);
    constexpr std::int64_t kLow = 0xffffffff;
    Weights most{};
    for (std::uint32_t v = 0; v < kVectors; ++v) {
      const auto count = Weights(votes[v]), hash = Weights(cluster_hash(labels[v], round));
      const Weights even = count << 32 | (hash & kLow), odd = (count & ~kLow) | (hash >> 32 & kLow);
      most = even > most ? even : most;
      most = odd > most ? odd : most;
    }
    return label_of_hash(static_cast<std::uint32_t>(std::max({most[0], most[1], most[2], most[3]})),
                         round);
  }

  // With room for a vector behind the last vote.
  alignas(sizeof(Lanes)) std::array<std::uint32_t, kClusterSample + kLanes> labels_;
  std::uint32_t size_ = 0;
};

// Takes the votes of the neighbours that a row asks in a round; label_of(neighbour) is the label
// that one votes for.
template <VertexId V>
void ask(Votes& votes, std::span<const V> neighbours, std::uint32_t row, std::uint32_t round,
         auto&& label_of) {
  const EdgeOffset degree = neighbours.size();
  votes.take(
      static_cast<std::uint32_t>(std::min<EdgeOffset>(degree, kClusterSample)),
      [&](std::uint32_t k) { return label_of(neighbours[cluster_sample(k, degree, row, round)]); });
}

// As ask() for each row from .. to - 1, whose neighbours are row_of(row); then calls
// decide(row, votes). The processor waits for the labels of several rows at once, as all of them
// are loaded before any is counted.
void ask_each(std::size_t from, std::size_t to, std::uint32_t round, auto&& row_of, auto&& label_of,
              auto&& decide) {
  constexpr std::size_t kTogether = 16;
  std::array<Votes, kTogether> votes;
  for (std::size_t first = from; first < to; first += kTogether) {
    const std::size_t last = std::min(first + kTogether, to);
    for (std::size_t row = first; row < last; ++row)
      ask(votes[row - first], row_of(row), static_cast<std::uint32_t>(row), round, label_of);
    for (std::size_t row = first; row < last; ++row) decide(row, votes[row - first]);
  }
}

}  // namespace plait
