// Breadth-first search: for every vertex the fewest edges of a path from the source, and the vertex
// before it on such a path.
//
// In a step, the rows at depth d give depth d + 1 to rows without one. Either each offers it to the
// rows at its outward edges; or, if there are many, each row without a depth looks among its inward
// edges for a row at depth d, and stops at the first (Beamer, Asanovic and Patterson,
// "Direction-optimizing breadth-first search", SC 2012, sections 3 to 5, with their constants).
//
// Of several vertices before it, a vertex takes the one with the least number, so that the answer
// depends on nothing but the graph: depth and parent are one number (path_key.h).
#pragma once

#include <algorithm>
#include <utility>

#include "plait/apps/app.h"
#include "plait/apps/path_key.h"
#include "plait/frontier/operators.h"
#include "plait/world/together.h"

namespace plait {

template <class Operators>
class Bfs {
 public:
  explicit Bfs(const Operators& on)
      : on_(on),
        view_(on.view()),
        path_(on.graph().vertices()),
        keys_(on.template slots<std::uint64_t>(PathKey::kNone)),
        reached_(on.frontier(view_.out)) {}

  void run(const AppSettings& settings) {
    source_ = settings.get<std::uint64_t>("source");
    on_.fill(keys_, PathKey::kNone);
    reached_.clear();
    if (const auto row = on_.graph().row_of(source_)) {
      on_.set(keys_, *row, path_.of(0, source_));
      reached_.add(*row);
    }
    // A frontier of many edges is met by rows that have not been reached: they look at a few edges
    // each, but all rows are asked. It pays until few rows are found.
    constexpr std::uint64_t kFewerEdges = 15, kFewerRows = 18;
    std::uint64_t unseen = on_.graph().edges();  // edges of rows that have not been reached
    bool meets = false;
    for (FrontierTotals all = reached_.totals(), before{}; all.rows > 0;) {
      require_on_all(
          reached_.step() + 1 < path_.depths(),
          "paths of more than {} edges cannot be told apart in a graph of so many vertices",
          path_.depths() - 2);
      unseen -= std::min(unseen, all.edges);
      meets = meets ? all.rows >= before.rows || all.rows > on_.graph().vertices() / kFewerRows
                    : all.edges > unseen / kFewerEdges &&
                          all.edges > on_.graph().vertices() / kFewerRows;
      meets ? meet() : offer();
      before = std::exchange(all, reached_.totals());
    }
  }

  std::vector<AppFact> facts() const {
    const std::uint64_t* const key = keys_.data();
    std::uint64_t reached = on_.sum(view_.own, [=] PLAIT_HOST_DEVICE(std::uint64_t row) {
      return std::uint64_t{key[row] != PathKey::kNone};
    });
    on_.world().all_reduce_sum(std::span(&reached, 1));
    // The last step has reached nothing.
    return {{"source", source_}, {"reached", reached}, {"depth", reached_.step() - 1}};
  }

  template <class Put>
  void columns(const Put& put) const {
    const std::uint64_t* const key = keys_.data();
    const PathKey path = path_;
    put(0, [=] PLAIT_HOST_DEVICE(std::uint64_t row) -> std::int64_t {
      return key[row] == PathKey::kNone ? -1 : static_cast<std::int64_t>(path.depth(key[row]));
    });
    put(1, [=] PLAIT_HOST_DEVICE(std::uint64_t row) -> std::int64_t {
      return key[row] == PathKey::kNone ? -1 : static_cast<std::int64_t>(path.parent(key[row]));
    });
  }

  // Rows of the frontier offer the next depth to the rows at their outward edges.
  void offer() {
    std::uint64_t* const key = keys_.data();
    const GraphView view = view_;
    const PathKey path = path_;
    reached_.advance(
        [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset) {
          return path.offer(key, row, view.number(row), slot);
        },
        keys_, Merge::min);
  }

  // Rows without a depth look for one of the frontier at their inward edges.
  void meet() {
    std::uint64_t* const key = keys_.data();
    const GraphView view = view_;
    const PathKey path = path_;
    const std::uint64_t depth = reached_.step() + 1;
    reached_.meet(
        view_.in,
        [=] PLAIT_HOST_DEVICE(std::uint64_t row) { return load(key + row) == PathKey::kNone; },
        [=] PLAIT_HOST_DEVICE(std::uint64_t row, Slot slot, EdgeOffset) {
          store(key + row, path.of(depth, view.number(slot)));
        });
  }

 private:
  const Operators& on_;
  const GraphView view_;
  const PathKey path_;
  typename Operators::template Values<std::uint64_t> keys_;  // of PathKey, by slot
  typename Operators::Frontier reached_;
  std::uint64_t source_ = 0;
};

}  // namespace plait
