#include "plait/reorder/merge.h"

#include <algorithm>
#include <numeric>

#include "plait/reorder/members.h"
#include "plait/reorder/merge_rule.h"

namespace plait {
namespace {

constexpr std::size_t kGrain = 256;
// Entries from which on the work of a turn takes longer than all threads need to meet.
constexpr EdgeOffset kForThreads = EdgeOffset{1} << 20;

class LocalMoves {
 public:
  LocalMoves(const Quotient& graph, double resolution, EdgeOffset large)
      : graph_(graph),
        by_chance_(resolution / static_cast<double>(graph.total)),
        labels_(graph.communities()),
        next_(graph.communities()),
        degrees_(graph.degrees),
        sizes_(graph.communities(), 1),
        large_(graph.neighbours.size() >= large),
        threads_(large_ && graph.neighbours.size() >= kForThreads ? thread_count() : 1),
        sums_(graph.communities(), threads_) {
    std::iota(labels_.begin(), labels_.end(), 0u);
  }

  std::vector<std::uint32_t> run() {
    std::uint64_t before = moves_at_first(labels_.size());
    for (std::uint32_t round = 0; round < kMostMoveRounds; ++round) {
      std::uint64_t moves = 0;
      for (std::uint32_t turn = 0; large_ && turn < kMoveTurns; ++turn)
        moves += move_at_once(round, turn);
      if (!large_) moves = move_in_order();
      if (few_moves(moves, labels_.size()) || (large_ && hardly_fewer(moves, before))) break;
      before = moves;
    }
    return std::move(labels_);
  }

 private:
  void set_label(std::uint32_t c, std::uint32_t label) {
    degrees_[labels_[c]] -= graph_.degrees[c], --sizes_[labels_[c]];
    degrees_[label] += graph_.degrees[c], ++sizes_[label];
    labels_[c] = label;
  }

  // Return how many have moved.
  std::uint64_t move_in_order() {
    std::uint64_t moves = 0;
    for (std::uint32_t c = 0; c < labels_.size(); ++c) {
      const std::uint32_t label = best(c, sums_.mine());
      if (label == labels_[c]) continue;
      set_label(c, label);
      ++moves;
    }
    return moves;
  }
  std::uint64_t move_at_once(std::uint32_t round, std::uint32_t turn) {
    const ThreadCount threads(threads_);
    parallel_blocks(labels_.size(), kGrain, [&](std::size_t begin, std::size_t end) {
      SumsByLabel& sums = sums_.mine();
      for (std::size_t i = begin; i < end; ++i) {
        const auto c = static_cast<std::uint32_t>(i);
        next_[c] = turn_of(c, round) == turn ? best(c, sums) : labels_[c];
      }
    });
    std::uint64_t moves = 0;
    for (std::uint32_t c = 0; c < labels_.size(); ++c) {
      if (next_[c] == labels_[c]) continue;
      set_label(c, next_[c]);
      ++moves;
    }
    return moves;
  }

  // Returns the label that a community is to take: of equally good ones the lowest.
  std::uint32_t best(std::uint32_t c, SumsByLabel& sums) const {
    const std::uint32_t own = labels_[c];
    for (EdgeOffset e = graph_.offsets[c]; e < graph_.offsets[c + 1]; ++e)
      sums.add(labels_[graph_.neighbours[e]], graph_.weights[e]);
    const auto gain = [&](std::uint32_t label, std::uint64_t others) {
      return merge_gain(sums.of(label), by_chance_, graph_.degrees[c], others);
    };
    std::uint32_t best = own;
    double most = gain(own, degrees_[own] - graph_.degrees[c]);
    for (const std::uint32_t label : sums.labels()) {
      if (label == own) continue;
      if (must_stay(own, sizes_[own], label, sizes_[label])) continue;
      const double value = gain(label, degrees_[label]);
      if (value > most || (value == most && best != own && label < best)) {
        most = value;
        best = label;
      }
    }
    sums.clear();
    return best;
  }

  const Quotient& graph_;
  const double by_chance_;
  std::vector<std::uint32_t> labels_, next_;
  std::vector<std::uint64_t> degrees_;  // edge ends, by label
  std::vector<std::uint32_t> sizes_;    // communities, by label
  const bool large_;
  const int threads_;
  mutable SumsOfThreads sums_;
};

}  // namespace

std::vector<std::uint32_t> merge(const Quotient& graph, double resolution, EdgeOffset large) {
  return LocalMoves(graph, resolution, large).run();
}

double modularity_of(const Quotient& graph) {
  std::vector<std::uint64_t> outer(graph.communities());
  for (std::uint32_t c = 0; c < graph.communities(); ++c)
    outer[c] = std::accumulate(graph.weights.begin() + graph.offsets[c],
                               graph.weights.begin() + graph.offsets[c + 1], std::uint64_t{0});
  return modularity_of(graph.degrees, outer, graph.total);
}

double modularity_of(std::span<const std::uint64_t> degrees, std::span<const std::uint64_t> outer,
                     std::uint64_t ends) {
  double sum = 0;
  const auto total = static_cast<double>(ends);
  for (std::uint64_t begin = 0; begin < degrees.size(); begin += kModularityPiece)
    sum += modularity_of_piece(degrees.data(), outer.data(), begin,
                               std::min(begin + kModularityPiece, std::uint64_t{degrees.size()}),
                               total);
  return sum;
}

}  // namespace plait
