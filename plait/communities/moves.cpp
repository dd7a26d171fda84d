#include "plait/communities/moves.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "plait/communities/moves_rule.h"
#include "plait/communities/short_row.h"
#include "plait/communities/sums_by_label.h"

namespace plait {
namespace {

constexpr std::size_t kEntriesPerPiece = std::size_t{1} << 12;
constexpr std::size_t kTogether = 16;  // rows whose entries the processor loads at once

class LocalMoves {
 public:
  LocalMoves(const Quotient& graph, double resolution, EdgeOffset large)
      : graph_(graph),
        state_(graph, resolution, graph.neighbours.size() >= large),
        short_(graph.total < ShortRow::kTooManyEnds ? ShortRow::kMostEntries : 0),
        grain_(std::max<std::size_t>(
            kEntriesPerPiece * count() / std::max<std::size_t>(graph.neighbours.size(), 1),
            kTogether)),
        threads_(state_.at_once ? threads_for(graph.neighbours.size()) : 1),
        sums_(count(), threads_) {}

  std::vector<std::uint32_t> run() {
    std::uint64_t before = moves_at_first(count());
    for (std::uint32_t round = 0; round < kMostMoveRounds; ++round) {
      const std::uint64_t moves = state_.at_once ? move_by_turns(round) : move_in_order();
      if (few_moves(moves, count()) || (state_.at_once && hardly_fewer(moves, before))) break;
      before = moves;
    }
    return std::move(state_.labels);
  }

 private:
  // Returns the threads that a turn over a quotient of so many entries has pieces for. Each takes
  // memory for all labels, which is set to zeros first.
  static int threads_for(EdgeOffset entries) {
    const EdgeOffset pieces = entries / (kMoveTurns * kEntriesPerPiece);
    return static_cast<int>(
        std::clamp<EdgeOffset>(pieces, 1, static_cast<EdgeOffset>(thread_count())));
  }
  std::uint32_t count() const { return graph_.communities(); }
  EdgeOffset entries(std::uint32_t c) const { return graph_.offsets[c + 1] - graph_.offsets[c]; }

  // These three return how many have moved.
  std::uint64_t move_in_order() {
    std::uint64_t moves = 0;
    for (std::uint32_t c = 0; c < count(); ++c) {
      std::uint32_t label;
      choose({&c, 1}, &label);
      moves += state_.set_label(c, label);
    }
    return moves;
  }
  std::uint64_t move_by_turns(std::uint32_t round) {
    for (auto& turn : turns_) turn.clear();
    for (std::uint32_t c = 0; c < count(); ++c) turns_[turn_of(c, round)].push_back(c);
    std::uint64_t moves = 0;
    for (const auto& turn : turns_) moves += move_at_once(turn);
    return moves;
  }
  std::uint64_t move_at_once(std::span<const std::uint32_t> turn) {
    const ThreadCount threads(threads_);
    next_.resize(turn.size());
    parallel_blocks(turn.size(), grain_, [&](std::size_t begin, std::size_t end) {
      choose(turn.subspan(begin, end - begin), next_.data() + begin);
    });
    std::uint64_t moves = 0;
    for (std::size_t i = 0; i < turn.size(); ++i) moves += state_.set_label(turn[i], next_[i]);
    return moves;
  }

  // Writes the labels that communities are to take: of equally good ones the lowest.
  void choose(std::span<const std::uint32_t> communities, std::uint32_t* to) {
    SumsByLabel& sums = sums_.mine();
    std::array<ShortRow, kTogether> rows;
    for (std::size_t first = 0; first < communities.size(); first += kTogether) {
      const std::size_t last = std::min(first + kTogether, communities.size());
      for (std::size_t i = first; i < last; ++i)
        if (entries(communities[i]) <= short_) rows[i - first].take(state_, communities[i]);
      for (std::size_t i = first; i < last; ++i)
        to[i] = entries(communities[i]) <= short_ ? rows[i - first].best()
                                                  : best_of_long(communities[i], sums);
    }
  }

  std::uint32_t best_of_long(std::uint32_t c, SumsByLabel& sums) const {
    const std::uint32_t own = state_.labels[c], own_size = state_.of[own].size;
    const auto others = sums.add(own, [&](auto&& add) {
      for (EdgeOffset e = graph_.offsets[c]; e < graph_.offsets[c + 1]; ++e)
        add(state_.labels[graph_.neighbours[e]], graph_.weights[e]);
    });
    const auto gain_by = [&](std::uint64_t edges, std::uint64_t ends) {
      return merge_gain(edges, state_.by_chance, graph_.degrees[c], ends);
    };
    std::uint32_t best = own;
    double most = gain_by(sums.take(own), state_.of[own].ends - graph_.degrees[c]);
    for (const std::uint32_t label : others) {
      const std::uint64_t edges = sums.take(label);
      if (static_cast<double>(edges) < most) continue;  // the gain is not above the edges
      if (state_.bars(own, own_size, label)) continue;
      const double gain = gain_by(edges, state_.of[label].ends);
      if (gain < most || (gain == most && (best == own || label > best))) continue;
      most = gain;
      best = label;
    }
    return best;
  }

  const Quotient& graph_;
  MoveState state_;
  std::array<std::vector<std::uint32_t>, kMoveTurns> turns_;  // communities
  std::vector<std::uint32_t> next_;                           // labels of those of a turn
  const EdgeOffset short_;                                    // entries of a ShortRow
  const std::size_t grain_;
  const int threads_;
  SumsOfThreads sums_;
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
