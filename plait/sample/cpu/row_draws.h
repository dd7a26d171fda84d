// Draws edges of one row after the other. Each thread has a RowScratch of its own.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "plait/base/data_or_null.h"
#include "plait/graph/csr.h"
#include "plait/sample/cpu/numbers.h"
#include "plait/sample/neighbours.h"
#include "plait/sample/seen_row.h"

namespace plait {

// Memory that draws reuse.
struct RowScratch {
  std::vector<std::uint64_t> chosen;    // a bit per position; all 0 between draws
  std::vector<std::uint64_t> eligible;  // positions
  std::vector<double> sums;
  std::vector<std::pair<double, std::uint64_t>> ranked;  // ranks and positions
};

// A target: its vertex and, in disjoint samples, its seed.
struct SampleTarget {
  std::uint64_t vertex;
  std::uint32_t tree = 0;
  std::int64_t now = 0;  // the time of the seed
};

// The rows of a graph, from which a hop draws. It refers to what it is made of.
template <VertexId V>
class RowDraws {
 public:
  // `sums`: row_sums() if settings and values draw by them; else empty.
  RowDraws(const Csr<V>& graph, const SampleSettings& settings, const SampleValues& values,
           std::span<const double> sums)
      : graph_(graph), settings_(settings), values_(values), sums_(sums) {}

  const Csr<V>& graph() const { return graph_; }
  const SampleSettings& settings() const { return settings_; }

  // Goes to a hop of a batch, whose trees are keyed by their numbers from `first_tree` on.
  void begin_hop(std::uint64_t key, std::size_t hop, std::uint32_t first_tree) {
    id_ = {.key = key, .tree = first_tree, .hop = static_cast<std::uint8_t>(hop)};
    all_ = settings_.fanouts[hop] == -1;
    fanout_ = all_ ? std::numeric_limits<std::uint64_t>::max()
                   : static_cast<std::uint64_t>(settings_.fanouts[hop]);
  }

  // Returns the number of edges that draw() gives.
  std::uint64_t count(const SampleTarget& target) const {
    const bool again = settings_.replace && !all_;
    const std::uint64_t enough = again ? 1 : fanout_;
    std::uint64_t found = 0;
    if (!filtered()) {
      found = std::min<std::uint64_t>(graph_.degree(target.vertex), enough);
    } else {
      const SeenRow<V> row = seen_row(target);
      for (std::uint64_t p = 0; p < graph_.degree(target.vertex) && found < enough; ++p)
        found += row.is_eligible(p);
    }
    return again ? found * fanout_ : found;
  }

  // Writes the places of edges, as many as count() has told, and fetches their neighbours.
  void draw(const SampleTarget& target, std::uint64_t count, EdgeOffset* edges,
            RowScratch& scratch) const {
    if (count == 0) return;
    const EdgeOffset first = graph_.offsets[target.vertex];
    DrawId id = id_;
    id.vertex = target.vertex;
    id.tree += target.tree;
    const VertexDraws draws(id);
    const bool again = settings_.replace && !all_;
    const std::uint64_t degree = graph_.degree(target.vertex);
    if (!filtered()) {
      if (again)
        draw_again(draws, degree, count, edges);
      else if (count == degree)
        std::iota(edges, edges + count, 0);
      else
        draw_distinct(draws, degree, count, edges, scratch);
    } else if (again && !sums_.empty()) {
      draw_by_sums(draws, sums_.subspan(first, degree), count, edges);
    } else {
      draw_filtered(draws, target, {edges, count}, scratch);
    }
    const V* const neighbours = graph_.neighbours.data();
    for (std::uint64_t i = 0; i < count; ++i) __builtin_prefetch(neighbours + (edges[i] += first));
  }

  // Fetches what draw() needs to begin with.
  void prefetch(std::uint64_t vertex) const { __builtin_prefetch(graph_.offsets.data() + vertex); }

 private:
  bool filtered() const { return !values_.weights.empty() || values_.timed(); }

  SeenRow<V> seen_row(const SampleTarget& target) const {
    return {{data_or_null(values_.weights), data_or_null(values_.edge_times),
             data_or_null(values_.vertex_times)},
            graph_.neighbours.data(),
            graph_.offsets[target.vertex],
            target.now};
  }

  // --- These write positions in the row. ---

  static void draw_again(const VertexDraws& draws, std::uint64_t population, std::uint64_t count,
                         std::uint64_t* positions) {
    for_numbers(
        draws, population, count, [&](std::uint64_t) { return population; },
        [&](std::uint64_t i, std::uint64_t number) { positions[i] = number; });
  }

  // Does what choose_distinct() does, in linear time.
  static void draw_distinct(const VertexDraws& draws, std::uint64_t population, std::uint64_t count,
                            std::uint64_t* positions, RowScratch& scratch) {
    if (scratch.chosen.size() * 64 < population) scratch.chosen.resize(population / 64 + 1);
    std::uint64_t* const chosen = scratch.chosen.data();
    const std::uint64_t first_last = population - count;
    for_numbers(
        draws, population, count, [&](std::uint64_t i) { return first_last + i + 1; },
        [&](std::uint64_t i, std::uint64_t number) {
          const bool before = chosen[number / 64] >> (number % 64) & 1;
          const std::uint64_t position = before ? first_last + i : number;
          chosen[position / 64] |= std::uint64_t{1} << (position % 64);
          positions[i] = position;
        });
    for (std::uint64_t i = 0; i < count; ++i) chosen[positions[i] / 64] = 0;
  }

  static void draw_by_sums(const VertexDraws& draws, std::span<const double> sums,
                           std::uint64_t count, std::uint64_t* positions) {
    for (std::uint64_t i = 0; i < count; ++i)
      positions[i] = drawn_by_sums(sums.data(), sums.size(), draws.share(i));
  }

  void draw_filtered(const VertexDraws& draws, const SampleTarget& target,
                     std::span<std::uint64_t> positions, RowScratch& scratch) const {
    const SeenRow<V> row = seen_row(target);
    std::vector<std::uint64_t>& eligible = scratch.eligible;
    eligible.clear();
    for (std::uint64_t p = 0; p < graph_.degree(target.vertex); ++p)
      if (row.is_eligible(p)) eligible.push_back(p);
    const bool again = settings_.replace && !all_;
    if (!again && positions.size() == eligible.size()) {
      std::ranges::copy(eligible, positions.begin());
    } else if (settings_.time == TimeRule::last) {
      take_latest(row, positions, eligible);
    } else if (!again && !values_.weights.empty()) {
      draw_distinct_by_weight(draws, row, positions, scratch);
    } else {
      if (!again)
        draw_distinct(draws, eligible.size(), positions.size(), positions.data(), scratch);
      else if (values_.weights.empty())
        draw_again(draws, eligible.size(), positions.size(), positions.data());
      else
        draw_by_sums(draws, sums_of(row, scratch), positions.size(), positions.data());
      for (std::uint64_t& position : positions) position = eligible[position];
    }
  }

  // Returns the sums of the eligible edges' weights.
  static std::span<const double> sums_of(const SeenRow<V>& row, RowScratch& scratch) {
    scratch.sums.clear();
    double sum = 0;
    for (const std::uint64_t p : scratch.eligible)
      scratch.sums.push_back(sum += double{row.weight(p)});
    return scratch.sums;
  }

  static void take_latest(const SeenRow<V>& row, std::span<std::uint64_t> positions,
                          std::vector<std::uint64_t>& eligible) {
    const auto nth = eligible.begin() + static_cast<std::ptrdiff_t>(positions.size());
    std::nth_element(eligible.begin(), nth, eligible.end(), [&](std::uint64_t a, std::uint64_t b) {
      const std::int64_t time_a = row.time(a), time_b = row.time(b);
      return time_a != time_b ? time_a > time_b : a < b;
    });
    std::copy(eligible.begin(), nth, positions.begin());
    std::ranges::sort(positions);
  }

  // Keeps the edges of the least ranks so far in a heap, the greatest of them first.
  static void draw_distinct_by_weight(const VertexDraws& draws, const SeenRow<V>& row,
                                      std::span<std::uint64_t> positions, RowScratch& scratch) {
    auto& heap = scratch.ranked;
    heap.clear();
    for (const std::uint64_t p : scratch.eligible) {
      const double u = draws.inner_share(p);
      const float weight = row.weight(p);
      const bool full = heap.size() == positions.size();
      if (full && weighted_rank_bound(u) > heap.front().first * double{weight}) continue;
      const std::pair ranked{weighted_rank(u, weight), p};
      if (full) {
        if (ranked > heap.front()) continue;
        std::ranges::pop_heap(heap);
        heap.pop_back();
      }
      heap.push_back(ranked);
      std::ranges::push_heap(heap);
    }
    std::ranges::transform(heap, positions.begin(),
                           [](const auto& ranked) { return ranked.second; });
    std::ranges::sort(positions);
  }

  const Csr<V>& graph_;
  const SampleSettings& settings_;
  const SampleValues& values_;
  std::span<const double> sums_;
  DrawId id_;
  bool all_ = false;
  std::uint64_t fanout_ = 0;
};

}  // namespace plait
