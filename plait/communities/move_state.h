// The state of the local moves (moves.h) on the CPU. Internal to this room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "plait/base/array.h"
#include "plait/communities/moves.h"
#include "plait/communities/moves_rule.h"

namespace plait {

// The vertices of one label.
struct OfLabel {
  std::uint64_t ends;  // of edges at them
  std::uint32_t size;  // how many there are
};

struct MoveState {
  // The graph and what the rules point to have to outlive this.
  MoveState(const WeightedRows& rows, const MoveRules& rules)
      : graph(rows),
        at_once(rules.at_once),
        by_chance(rules.resolution / static_cast<double>(rows.total)),
        may_leave(rules.may_leave),
        within(rules.within),
        labels(rows.count),
        of(rows.count) {
    if (rules.start == nullptr)
      std::iota(labels.begin(), labels.end(), 0u);
    else
      std::copy_n(rules.start, rows.count, labels.begin());
    std::fill_n(of.data(), of.size(), OfLabel{});
    for (std::uint32_t v = 0; v < rows.count; ++v)
      of[labels[v]].ends += rows.degrees[v], ++of[labels[v]].size;
  }

  // Returns whether the label is another one than before.
  bool set_label(std::uint32_t vertex, std::uint32_t label) {
    const std::uint32_t from = labels[vertex];
    if (label == from) return false;
    of[from].ends -= graph.degrees[vertex], --of[from].size;
    of[label].ends += graph.degrees[vertex], ++of[label].size;
    labels[vertex] = label;
    return true;
  }

  // Tells whether a vertex must not take a label. One that moves alone may take any.
  bool bars(std::uint32_t own, std::uint32_t own_size, std::uint32_t label) const {
    if (within != nullptr) {
      // One that moves alone has no turn.
      return must_stay_refining(own_size, label, of[label].size, round,
                                at_once ? turn : kMoveTurns);
    }
    return at_once & must_stay(own, own_size, label, of[label].size);
  }
  // Returns the label under which a vertex may be alone; its own one if there is none.
  std::uint32_t alone(std::uint32_t vertex, std::uint32_t own) const {
    return may_leave && within == nullptr && of[vertex].size == 0 ? vertex : own;
  }
  // Tells whether an entry of a vertex's row can draw it to another community.
  bool draws(std::uint32_t vertex, EdgeOffset e) const {
    return graph.draws(vertex, e) &&
           (within == nullptr || within[vertex] == within[graph.neighbours[e]]);
  }

  const WeightedRows& graph;
  const bool at_once;                 // vertices move at the same time
  const double by_chance;             // of merge_gain()
  const bool may_leave;               // as MoveRules
  const std::uint32_t* const within;  // as MoveRules
  std::uint32_t round = 0, turn = 0;
  std::vector<std::uint32_t> labels;  // by vertex
  Buffer<OfLabel> of;                 // by label
};

}  // namespace plait
