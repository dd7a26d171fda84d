// The choice of a label for a vertex with few entries, on the CPU. Internal to this room.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>

#include "plait/communities/move_state.h"

namespace plait {

// The entries of one row. Those that lead to the same label are found by comparing each with
// all others, four at a time, and gains are compared four at a time, too: no processor could
// predict the branches that choose a label. It is best to call take() for several rows before
// best(), so that the processor loads their labels at once.
class ShortRow {
 public:
  static constexpr EdgeOffset kMostEntries = 16;
  // Graphs with as many edge ends or more are beyond the precision of gains.
  static constexpr std::uint64_t kTooManyEnds = std::uint64_t{1} << 52;

  // Takes the entries of a row.
  void take(const MoveState& state, std::uint32_t row) {
    const WeightedRows& graph = state.graph;
    const EdgeOffset begin = graph.begin[row];
    const std::uint32_t vertex = graph.vertex(row);
    const std::uint64_t degree = graph.degrees[vertex];
    own_ = state.labels[vertex];
    const OfLabel own = state.of[own_];
    size_ = static_cast<std::uint32_t>(graph.end[row] - begin);
    std::uint64_t own_edges = 0;
    for (std::uint32_t k = 0; k < size_; ++k) {
      const std::uint32_t label = state.labels[graph.neighbours[begin + k]];
      const bool is_own = label == own_, draws = state.draws(vertex, begin + k);
      const bool barred = is_own | !draws | state.bars(own_, own.size, label);
      labels_[k] = label | -std::int64_t{barred} << 32;
      ends_[k] = static_cast<std::int64_t>(state.of[label].ends);
      weights_[k] = static_cast<std::int64_t>(graph.weight(begin + k));
      own_edges += is_own && draws ? graph.weight(begin + k) : 0;
    }
    std::fill_n(labels_.begin() + size_, kLanes, kNone);
    alone_ = state.alone(vertex, own_);
    stay_ = merge_gain(own_edges, state.by_chance, degree, own.ends - degree);
    chance_ = state.by_chance * static_cast<double>(degree);
  }

  // Returns the label to take.
  std::uint32_t best() const {
    switch ((size_ + kLanes - 1) / kLanes) {
      case 0:
        return own_;
      case 1:
        return best_of<1>();
      case 2:
        return best_of<2>();
      case 3:
        return best_of<3>();
      default:
        return best_of<4>();
    }
  }

 private:
  static constexpr std::uint32_t kLanes = 4;
  static_assert(kMostEntries == 4 * kLanes);
  static constexpr std::int64_t kNone = -1, kHighest = std::numeric_limits<std::int64_t>::max();
  // Ends that make a gain endlessly low.
  static constexpr double kEndless = std::numeric_limits<double>::infinity();
  typedef std::int64_t Numbers __attribute__((vector_size(8 * kLanes)));
  typedef double Gains __attribute__((vector_size(8 * kLanes)));

  // Converts numbers below 2^52, which become the low bits of numbers from 2^52 on.
  static Gains to_gains(Numbers numbers) {
    return Gains(numbers | std::int64_t{0x4330000000000000}) - 0x1p52;
  }

  // The entries lie in so many vectors. The last vector may end with kNone.
  template <std::uint32_t kVectors>
  std::uint32_t best_of() const {
    Numbers labels[kVectors], ends[kVectors], edges[kVectors]{};
    std::memcpy(labels, labels_.data(), sizeof labels);
    std::memcpy(ends, ends_.data(), sizeof ends);
    for (std::uint32_t k = 0; k < size_; ++k)
      for (std::uint32_t v = 0; v < kVectors; ++v)
        edges[v] += (labels[v] == labels_[k]) & weights_[k];
    const Numbers highest = Numbers{} + kHighest;
    const Gains endless = Gains{} + kEndless;
    Gains most = -endless;
    Numbers best = highest;
    for (std::uint32_t v = 0; v < kVectors; ++v) {
      const Gains others = labels[v] < 0 ? endless : to_gains(ends[v]);
      const Gains gain = gain_of(to_gains(edges[v]), chance_, others);
      const Numbers better = (gain > most) | ((gain == most) & (labels[v] < best));
      most = better ? gain : most;
      best = better ? labels[v] : best;
    }
    const double gain = std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
    best = most == gain ? best : highest;
    const std::int64_t label = std::min(std::min(best[0], best[1]), std::min(best[2], best[3]));
    return best_label(own_, stay_, static_cast<std::uint32_t>(label), gain, alone_);
  }

  std::uint32_t own_, alone_, size_ = 0;
  double stay_, chance_;  // the gain of the own label, and gain_of()'s chance
  // With room for a vector behind the last entry. Labels that must not be taken are negative.
  alignas(sizeof(Numbers)) std::array<std::int64_t, kMostEntries + kLanes> labels_, ends_;
  std::array<std::int64_t, kMostEntries> weights_;
};

}  // namespace plait
