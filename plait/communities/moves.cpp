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
  LocalMoves(const WeightedRows& graph, const MoveRules& rules)
      : graph_(graph),
        rules_(rules),
        state_(graph, rules),
        short_(graph.total < ShortRow::kTooManyEnds ? ShortRow::kMostEntries : 0),
        grain_(std::max<std::size_t>(
            kEntriesPerPiece * graph.rows / std::max<std::size_t>(graph.entries, 1), kTogether)),
        threads_(rules.at_once ? threads_for(graph.entries) : 1),
        sums_(graph.count, threads_) {}

  std::vector<std::uint32_t> run() {
    const std::uint64_t movable = rules_.movable > 0 ? rules_.movable : graph_.count;
    std::uint64_t before = moves_at_first(graph_.count);
    for (std::uint32_t round = 0; round < kMostMoveRounds; ++round) {
      if (rules_.only_woken && round > 0) wake();
      const std::uint64_t moves = rules_.at_once ? move_by_turns(round) : move_in_order();
      if (few_moves(moves, movable, rules_.least_share) ||
          (rules_.at_once && hardly_fewer(moves, before)))
        break;
      before = moves;
    }
    return std::move(state_.labels);
  }

 private:
  // Returns the threads that a turn over so many entries has pieces for. Each takes memory for all
  // labels, which is set to zeros first.
  static int threads_for(EdgeOffset entries) {
    const EdgeOffset pieces = entries / (kMoveTurns * kEntriesPerPiece);
    return static_cast<int>(
        std::clamp<EdgeOffset>(pieces, 1, static_cast<EdgeOffset>(thread_count())));
  }
  EdgeOffset entries(std::uint32_t row) const { return graph_.end[row] - graph_.begin[row]; }
  // Tells whether a vertex looks for a better community in this round. In a refinement a vertex
  // that is not alone stays so.
  bool looks(std::uint32_t row) const {
    if (!asleep_.empty() && asleep_[row] != 0) return false;
    return rules_.within == nullptr || state_.of[state_.labels[graph_.vertex(row)]].size == 1;
  }

  // Lets the rows sleep none of whose neighbours has moved since the last call.
  void wake() {
    asleep_.resize(graph_.rows);
    const ThreadCount threads(threads_);
    parallel_blocks(graph_.rows, grain_, [&](std::size_t begin, std::size_t end) {
      for (std::size_t row = begin; row < end; ++row)
        asleep_[row] =
            entries(static_cast<std::uint32_t>(row)) <= kMostToWake &&
            std::none_of(graph_.neighbours + graph_.begin[row], graph_.neighbours + graph_.end[row],
                         [&](std::uint32_t v) { return moved_[v] != 0; });
    });
    std::ranges::fill(moved_, std::uint8_t{0});
  }

  // These three return how many have moved.
  std::uint64_t move_in_order() {
    std::uint64_t moves = 0;
    for (std::uint32_t row = 0; row < graph_.rows; ++row) {
      if (!looks(row)) continue;
      std::uint32_t label;
      choose({&row, 1}, &label);
      moves += set_label({graph_.vertex(row), label});
    }
    return moves;
  }
  std::uint64_t move_by_turns(std::uint32_t round) {
    for (auto& turn : turns_) turn.clear();
    for (std::uint32_t row = 0; row < graph_.rows; ++row)
      if (looks(row)) turns_[turn_of(graph_.vertex(row), round)].push_back(row);
    std::uint64_t moves = 0;
    state_.round = round;
    for (state_.turn = 0; state_.turn < kMoveTurns; ++state_.turn)
      moves += move_at_once(turns_[state_.turn]);
    return moves;
  }
  std::uint64_t move_at_once(std::span<const std::uint32_t> turn) {
    {
      const ThreadCount threads(threads_);
      next_.resize(turn.size());
      parallel_blocks(turn.size(), grain_, [&](std::size_t begin, std::size_t end) {
        choose(turn.subspan(begin, end - begin), next_.data() + begin);
      });
    }
    std::uint64_t moves = 0;
    if (!rules_.share) {
      for (std::size_t i = 0; i < turn.size(); ++i)
        moves += set_label({graph_.vertex(turn[i]), next_[i]});
      return moves;
    }
    std::vector<Move> mine;
    for (std::size_t i = 0; i < turn.size(); ++i)
      if (const std::uint32_t v = graph_.vertex(turn[i]); next_[i] != state_.labels[v])
        mine.push_back({v, next_[i]});
    for (const Move& move : rules_.share(mine)) moves += set_label(move);
    return moves;
  }
  bool set_label(const Move& move) {
    if (!state_.set_label(move.vertex, move.label)) return false;
    if (rules_.only_woken) {
      if (moved_.empty()) moved_.resize(graph_.count);
      moved_[move.vertex] = 1;
    }
    return true;
  }

  // Writes the labels that vertices are to take: of equally good ones the lowest.
  void choose(std::span<const std::uint32_t> of_rows, std::uint32_t* to) {
    SumsByLabel& sums = sums_.mine();
    std::array<ShortRow, kTogether> rows;
    for (std::size_t first = 0; first < of_rows.size(); first += kTogether) {
      const std::size_t last = std::min(first + kTogether, of_rows.size());
      for (std::size_t i = first; i < last; ++i)
        if (entries(of_rows[i]) <= short_) rows[i - first].take(state_, of_rows[i]);
      for (std::size_t i = first; i < last; ++i)
        to[i] =
            entries(of_rows[i]) <= short_ ? rows[i - first].best() : best_of_long(of_rows[i], sums);
    }
  }

  std::uint32_t best_of_long(std::uint32_t row, SumsByLabel& sums) const {
    const std::uint32_t vertex = graph_.vertex(row), own = state_.labels[vertex],
                        own_size = state_.of[own].size;
    const auto others = sums.add(own, [&](auto&& add) {
      for (EdgeOffset e = graph_.begin[row]; e < graph_.end[row]; ++e)
        if (state_.draws(vertex, e)) add(state_.labels[graph_.neighbours[e]], graph_.weight(e));
    });
    const std::uint64_t degree = graph_.degrees[vertex];
    const auto gain_by = [&](std::uint64_t edges, std::uint64_t ends) {
      return merge_gain(edges, state_.by_chance, degree, ends);
    };
    std::uint32_t best = own;
    const double stay = gain_by(sums.take(own), state_.of[own].ends - degree);
    double most = stay;
    for (const std::uint32_t label : others) {
      const std::uint64_t edges = sums.take(label);
      if (static_cast<double>(edges) < most) continue;  // the gain is not above the edges
      if (state_.bars(own, own_size, label)) continue;
      const double gain = gain_by(edges, state_.of[label].ends);
      if (gain < most || (gain == most && (best == own || label > best))) continue;
      most = gain;
      best = label;
    }
    return best_label(own, stay, best, most, state_.alone(vertex, own));
  }

  const WeightedRows& graph_;
  const MoveRules& rules_;
  MoveState state_;
  std::array<std::vector<std::uint32_t>, kMoveTurns> turns_;  // rows
  std::vector<std::uint32_t> next_;                           // labels of those of a turn
  std::vector<std::uint8_t> moved_, asleep_;                  // by vertex, and by row
  const EdgeOffset short_;                                    // entries of a ShortRow
  const std::size_t grain_;
  const int threads_;
  SumsOfThreads sums_;
};

}  // namespace

std::vector<std::uint32_t> local_moves(const WeightedRows& graph, const MoveRules& rules) {
  return LocalMoves(graph, rules).run();
}

std::vector<std::uint32_t> merge(const Quotient& graph, double resolution, EdgeOffset large) {
  MoveRules rules;
  rules.resolution = resolution;
  rules.at_once = graph.neighbours.size() >= large;
  return local_moves(graph.rows(), rules);
}

double modularity_of(const Quotient& graph, double resolution) {
  std::vector<std::uint64_t> outer(graph.communities());
  for (std::uint32_t c = 0; c < graph.communities(); ++c)
    outer[c] = std::accumulate(graph.weights.begin() + graph.offsets[c],
                               graph.weights.begin() + graph.offsets[c + 1], std::uint64_t{0});
  return modularity_of(graph.degrees, outer, graph.total, resolution);
}

double modularity_of(std::span<const std::uint64_t> degrees, std::span<const std::uint64_t> outer,
                     std::uint64_t ends, double resolution) {
  double sum = 0;
  const auto total = static_cast<double>(ends);
  for (std::uint64_t begin = 0; begin < degrees.size(); begin += kModularityPiece)
    sum += modularity_of_piece(degrees.data(), outer.data(), begin,
                               std::min(begin + kModularityPiece, std::uint64_t{degrees.size()}),
                               total, resolution);
  return sum;
}

}  // namespace plait
