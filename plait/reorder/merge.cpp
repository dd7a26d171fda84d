#include "plait/reorder/merge.h"

#include <algorithm>
#include <numeric>

#include "plait/reorder/clusters_rule.h"
#include "plait/reorder/members.h"

namespace plait {
namespace {

constexpr std::uint32_t kMostRounds = 16, kTurns = 4;
constexpr std::size_t kGrain = 256;

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
        sums_(graph.communities(), large_ ? thread_count() : 1) {
    std::iota(labels_.begin(), labels_.end(), 0u);
  }

  std::vector<std::uint32_t> run() {
    for (std::uint32_t round = 0; round < kMostRounds; ++round) {
      std::uint64_t moves = 0;
      for (std::uint32_t turn = 0; large_ && turn < kTurns; ++turn)
        moves += move_at_once(round, turn);
      if (!large_) moves = move_in_order();
      if (moves <= labels_.size() / 200) break;
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
    parallel_blocks(labels_.size(), kGrain, [&](std::size_t begin, std::size_t end) {
      SumsByLabel& sums = sums_.mine();
      for (std::size_t i = begin; i < end; ++i) {
        const auto c = static_cast<std::uint32_t>(i);
        next_[c] = cluster_hash(c, round) % kTurns == turn ? best(c, sums) : labels_[c];
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
    const auto degree = static_cast<double>(graph_.degrees[c]);
    const auto gain = [&](std::uint32_t label, std::uint64_t others) {
      return static_cast<double>(sums.of(label)) -
             by_chance_ * degree * static_cast<double>(others);
    };
    std::uint32_t best = own;
    double most = gain(own, degrees_[own] - graph_.degrees[c]);
    for (const std::uint32_t label : sums.labels()) {
      if (label == own) continue;
      // If two communities are alone, the one with the higher label moves; else they would change
      // places.
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
  const bool large_;
  mutable SumsOfThreads sums_;
};

}  // namespace

std::vector<std::uint32_t> merge(const Quotient& graph, double resolution, EdgeOffset large) {
  return LocalMoves(graph, resolution, large).run();
}

double modularity_of(const Quotient& graph) {
  double sum = 0;
  const auto total = static_cast<double>(graph.total);
  for (std::uint32_t c = 0; c < graph.communities(); ++c) {
    std::uint64_t inner = graph.degrees[c];
    for (EdgeOffset e = graph.offsets[c]; e < graph.offsets[c + 1]; ++e) inner -= graph.weights[e];
    const double share = static_cast<double>(graph.degrees[c]) / total;
    sum += static_cast<double>(inner) / total - share * share;
  }
  return sum;
}

}  // namespace plait
