#include "plait/reorder/merge.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "plait/reorder/clusters_rule.h"
#include "plait/reorder/members.h"

namespace plait {
namespace {

constexpr std::uint32_t kMostRounds = 16;
constexpr std::size_t kGrain = 256;

class LocalMoves {
 public:
  LocalMoves(const Quotient& graph, double resolution)
      : graph_(graph),
        by_chance_(resolution / static_cast<double>(graph.total)),
        labels_(graph.communities()),
        next_(graph.communities()),
        degrees_(graph.degrees),
        sizes_(graph.communities(), 1),
        sums_(graph.communities()) {
    std::iota(labels_.begin(), labels_.end(), 0u);
  }

  std::vector<std::uint32_t> run() {
    std::uint64_t moves = 0;
    for (std::uint32_t round = 0; round < kMostRounds; ++round) {
      moves += move(round);
      if (round % 2 == 0) continue;
      if (moves <= labels_.size() / 200) break;  // of the last two rounds, in which all had a turn
      moves = 0;
    }
    return std::move(labels_);
  }

 private:
  // Returns how many have moved.
  std::uint64_t move(std::uint32_t round) {
    std::atomic<std::uint64_t> moves{0};
    parallel_blocks(labels_.size(), kGrain, [&](std::size_t begin, std::size_t end) {
      SumsByLabel& sums = sums_.mine();
      std::uint64_t here = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const auto c = static_cast<std::uint32_t>(i);
        next_[c] = has_turn(c, round) ? best(c, sums) : labels_[c];
        here += next_[c] != labels_[c];
      }
      moves.fetch_add(here, std::memory_order_relaxed);
    });
    for (std::uint32_t c = 0; c < labels_.size(); ++c) {
      if (next_[c] == labels_[c]) continue;
      degrees_[labels_[c]] -= graph_.degrees[c], --sizes_[labels_[c]];
      degrees_[next_[c]] += graph_.degrees[c], ++sizes_[next_[c]];
    }
    labels_ = next_;
    return moves;
  }

  // All have a turn in two rounds.
  static bool has_turn(std::uint32_t c, std::uint32_t round) {
    return cluster_hash(c, round / 2) % 2 == round % 2;
  }

  // Returns the label that a community is to take: of equally good ones the lowest.
  std::uint32_t best(std::uint32_t c, SumsByLabel& sums) const {
    const std::uint32_t own = labels_[c];
    for (EdgeOffset e = graph_.offsets[c]; e < graph_.offsets[c + 1]; ++e)
      sums.add(labels_[graph_.neighbours[e]], graph_.weights[e]);
    const auto degree = static_cast<double>(graph_.degrees[c]);
    const auto gain = [&](std::uint32_t label, std::uint64_t others) {
      return static_cast<double>(sums.of(label)) -
             by_chance_ * degree * static_cast<double>(others);
    };
    std::uint32_t best = own;
    double most = gain(own, degrees_[own] - graph_.degrees[c]);
    for (const std::uint32_t label : sums.labels()) {
      if (label == own) continue;
      // Of two that are alone, the one with the higher label moves: else they would change places.
      if (sizes_[own] == 1 && sizes_[label] == 1 && label > own) continue;
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
  mutable SumsOfThreads sums_;
};

}  // namespace

std::vector<std::uint32_t> merge(const Quotient& graph, double resolution) {
  return LocalMoves(graph, resolution).run();
}

}  // namespace plait
