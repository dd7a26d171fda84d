// Core numbers: for every vertex the greatest k such that it is in a part of the graph where every
// vertex has k neighbours or more. The graph is taken as undirected and simple: loops do not count,
// and all edges between two vertices count once.
//
// Vertices with k neighbours or fewer are peeled off, and so are those that have no more than k
// neighbours left then, until none is; their core number is k. Then k is the least number of
// neighbours that any vertex has left (Seidman, "Network structure and minimum degree", Social
// Networks 5, 1983; Matula and Beck, JACM 30, 1983).
//
// A row that is peeled takes 1 from the neighbours left of each slot that it has an edge to. Halo
// slots hold how much their owners are still to be told.
#pragma once

#include <algorithm>
#include <utility>

#include "plait/apps/app.h"
#include "plait/frontier/operators.h"
#include "plait/frontier/shared_value.h"
#include "plait/frontier/simple_edges.h"

namespace plait {

template <class Operators>
class Kcore {
 public:
  explicit Kcore(const Operators& on)
      : on_(on),
        view_(on.view()),
        left_(on.template slots<std::uint32_t>(0)),
        cores_(on.template array<std::uint32_t>(view_.own, kNone)),
        least_(on.template array<std::uint32_t>(1, 0)),
        peeled_(on.frontier(view_.all)),
        rest_(on.frontier(view_.all)) {}

  void run(const AppSettings&) {
    on_.fill(cores_, kNone);
    on_.fill(left_, 0u);
    peeled_.clear();
    count_neighbours();
    rest_.fill([=] PLAIT_HOST_DEVICE(std::uint64_t) { return true; });
    for (std::uint32_t k = least_left(); k != kNone; k = least_left()) {
      take_peeled(rest_, k);
      while (peeled_.totals().rows > 0) peel(k);
    }
  }

  std::vector<AppFact> facts() const {
    const std::uint32_t* const core = cores_.data();
    std::uint64_t most = on_.greatest(
        view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) { return std::uint64_t{core[row]}; });
    on_.world().all_reduce_max(std::span(&most, 1));
    const std::uint64_t of_all = most;
    std::uint64_t count = on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return std::uint64_t{core[row] == of_all};
    });
    on_.world().all_reduce_sum(std::span(&count, 1));
    return {{"max_core", most}, {"max_core_size", count}};
  }

  template <class Put>
  void columns(const Put& put) const {
    const std::uint32_t* const core = cores_.data();
    put(0, [=] PLAIT_HOST_DEVICE(std::uint64_t row) { return std::int64_t{core[row]}; });
  }

  // Counts the neighbours of all rows.
  void count_neighbours() {
    const GraphView view = view_;
    std::uint32_t* const left = left_.data();
    on_.template sum_edges<std::uint32_t>(
        view_.all,
        [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset e) {
          return static_cast<std::uint32_t>(is_simple_edge(view, row, slot, e));
        },
        [=] PLAIT_HOST_DEVICE(std::uint64_t row, std::uint32_t sum) {
          left[row] = sum;
          return TwoSums{};
        });
  }

  // Takes peeled rows from the rest. Returns the least number of neighbours that a row has left;
  // kNone if all rows of all ranks are peeled.
  std::uint32_t least_left() {
    const std::uint32_t *const left = left_.data(), *const core = cores_.data();
    std::uint32_t* const least = least_.data();
    on_.set(least_, 0, kNone);
    rest_.fill(rest_, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      if (core[row] != kNone) return false;
      if (left[row] < load(least)) take_min(least, left[row]);
      return true;
    });
    std::uint32_t of_all = on_.get(least_, 0);
    on_.world().all_reduce_min(std::span(&of_all, 1));
    return of_all;
  }

  // Peels the rows of a frontier that have no more than k neighbours left: they become peeled_.
  void take_peeled(const typename Operators::Frontier& from, std::uint32_t k) {
    const std::uint32_t* const left = left_.data();
    std::uint32_t* const core = cores_.data();
    peeled_.fill(from, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      if (core[row] != kNone || left[row] > k) return false;
      core[row] = k;
      return true;
    });
  }

  // Takes the peeled rows from their neighbours. Those that are to be peeled next are peeled.
  void peel(std::uint32_t k) {
    const GraphView view = view_;
    const std::uint64_t own = view_.own;
    std::uint32_t *const left = left_.data(), *const core = cores_.data();
    const bool alone = on_.world().size() == 1;
    peeled_.advance(
        [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset e) {
          if (slot < own && load(core + slot) != kNone) return false;
          if (!is_simple_edge(view, row, slot, e)) return false;
          const std::uint32_t before = take_sum(left + slot, ~std::uint32_t{0});
          if (slot >= own) return true;
          if (before != k + 1) return false;
          if (alone) store(core + slot, k);
          return true;
        },
        left_, Merge::add);
    // Ranks tell of rows that have more neighbours left, or have been peeled before, too.
    if (!alone) take_peeled(peeled_, k);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};  // of rows that are not peeled

  const Operators& on_;
  const GraphView view_;
  typename Operators::template Values<std::uint32_t> left_;   // neighbours, by slot
  typename Operators::template Values<std::uint32_t> cores_;  // of own rows
  typename Operators::template Values<std::uint32_t> least_;  // one
  typename Operators::Frontier peeled_, rest_;
};

}  // namespace plait
