// Triangles: for every vertex the number of triangles that it is a corner of. The graph is taken as
// undirected and simple: loops do not count, and all edges between two vertices count once.
//
// Each edge is kept by its lower end alone, by degree and then by number, in a list of that row. So
// lists are short: with E edges none has more than sqrt(2 E) entries, and a hub has few. A triangle
// of u < v < w is found once, where the list of u has v and w, and that of v has w (Schank and
// Wagner, "Finding, counting and listing all triangles in large graphs", WEA 2005: forward).
//
// Halo slots hold how much their owners are still to be told. Bytes that move per edge, beside the
// intersection: the edges and the degrees of their ends are read once, 8, and half of the edges
// are written, 2. Ranks lend each other their lists, in turn: a list crosses to each other rank
// once.
#pragma once

#include <numeric>
#include <vector>

#include "plait/apps/app.h"
#include "plait/frontier/lists.h"
#include "plait/frontier/operators.h"
#include "plait/frontier/shared_value.h"
#include "plait/frontier/simple_edges.h"
#include "plait/world/gather.h"

namespace plait {

template <class Operators>
class Triangles {
 public:
  explicit Triangles(const Operators& on)
      : on_(on),
        view_(on.view()),
        degrees_(on.template slots<std::uint32_t>(0)),
        places_(on.template slots<ListPlace>({})),
        triangles_(on.template slots<std::uint64_t>(0)) {}

  void run(const AppSettings&) {
    keep_edges();
    place_lists();
    count();
  }

  std::vector<AppFact> facts() const {
    const std::uint64_t* const triangles = triangles_.data();
    const auto of_row = [=] PLAIT_HOST_DEVICE(std::uint64_t row) { return triangles[row]; };
    std::uint64_t sums[] = {on_.sum(view_.own, of_row), pairs_of_neighbours()};
    std::uint64_t most = on_.greatest(view_.own, of_row);
    on_.world().all_reduce_sum(std::span(sums));
    on_.world().all_reduce_max(std::span(&most, 1));
    return {{"triangles", sums[0] / 3},
            {"most", most},
            {"transitivity",
             sums[1] == 0 ? 0 : static_cast<double>(sums[0]) / static_cast<double>(sums[1])}};
  }

  template <class Put>
  void columns(const Put& put) const {
    const std::uint64_t* const triangles = triangles_.data();
    put(0, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return static_cast<std::int64_t>(triangles[row]);
    });
  }

  // Gives each row the edges of which it is the lower end.
  void keep_edges() {
    const GraphView view = view_;
    std::uint32_t* const degree = degrees_.data();
    on_.for_rows(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      const EdgeOffset edges = view.all.degree(row);
      degree[row] = edges < ~std::uint32_t{0} ? static_cast<std::uint32_t>(edges) : ~0u;
    });
    on_.pull(degrees_);
    on_.keep(
        view_.all,
        [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset e) {
          const bool lower = degree[row] == degree[slot] ? view.number(row) < view.number(slot)
                                                         : degree[row] < degree[slot];
          return lower && is_simple_edge(view, row, slot, e);
        },
        kept_);
  }

  // Collective. Tells all ranks where the lists of rows stand.
  void place_lists() {
    sizes_ = gather_values(on_.world(), std::uint64_t{kept_.slots.size()});
    const auto rank = static_cast<std::size_t>(on_.world().rank());
    first_ = std::accumulate(sizes_.begin(), sizes_.begin() + rank, std::uint64_t{0});
    const std::uint64_t first = first_;
    const std::uint64_t* const begin = kept_.begin.data();
    ListPlace* const places = places_.data();
    on_.for_rows(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      places[row] = {first + begin[row], begin[row + 1] - begin[row]};
    });
    on_.pull(places_);
    if (on_.world().size() == 1) return;
    if (numbers_.size() != kept_.slots.size())
      numbers_ = on_.template array<std::uint32_t>(kept_.slots.size(), 0);
    const GraphView view = view_;
    const Slot* const slots = kept_.slots.data();
    std::uint32_t* const numbers = numbers_.data();
    on_.for_rows(numbers_.size(), [=] PLAIT_HOST_DEVICE(std::uint64_t i) {
      numbers[i] = static_cast<std::uint32_t>(view.number(slots[i]));
    });
  }

  // Collective.
  void count() {
    on_.fill(triangles_, std::uint64_t{0});
    std::uint64_t* const triangles = triangles_.data();
    const auto add = [=] PLAIT_HOST_DEVICE(std::uint64_t slot, std::uint64_t times) {
      take_sum(triangles + slot, times);
    };
    // One rank needs no numbers beside slots.
    auto& numbers = on_.world().size() == 1 ? kept_.slots : numbers_;
    const SlotLists lists{places_.data(), first_, kept_.slots.data(), numbers.data()};
    on_.lend(numbers, [&](int rank, const std::uint32_t* data) {
      const auto r = static_cast<std::size_t>(rank);
      const auto before = std::accumulate(sizes_.begin(), sizes_.begin() + r, std::uint64_t{0});
      on_.intersect(lists, LentEntries{before, sizes_[r], data}, add);
    });
    on_.push(triangles_, Merge::add);
  }

  // Returns the number of pairs of neighbours that own rows have.
  std::uint64_t pairs_of_neighbours() const {
    const GraphView view = view_;
    return on_
        .template sum_edges<std::uint64_t>(
            view_.all,
            [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset e) {
              return static_cast<std::uint64_t>(is_simple_edge(view, row, slot, e));
            },
            [=] PLAIT_HOST_DEVICE(std::uint64_t, std::uint64_t neighbours) {
              return TwoSums{neighbours * (neighbours - (neighbours > 0)) / 2, 0};
            })
        .first;
  }

 private:
  const Operators& on_;
  const GraphView view_;
  typename Operators::template Values<std::uint32_t> degrees_;    // by slot
  typename Operators::template Values<ListPlace> places_;         // by slot
  typename Operators::template Values<std::uint64_t> triangles_;  // by slot
  Kept<Operators> kept_;
  typename Operators::template Values<std::uint32_t> numbers_;  // of vertices, as kept_.slots
  std::vector<std::uint64_t> sizes_;                            // of kept_, by rank
  std::uint64_t first_ = 0;  // the number of kept edges of the ranks before
};

}  // namespace plait
