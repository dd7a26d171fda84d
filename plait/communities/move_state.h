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
  // The graph has to outlive this. `start`: as MoveRules.
  MoveState(const WeightedRows& rows, double resolution, bool moves_at_once,
            const std::uint32_t* start)
      : graph(rows),
        at_once(moves_at_once),
        by_chance(resolution / static_cast<double>(rows.total)),
        labels(rows.count),
        of(rows.count) {
    if (start == nullptr)
      std::iota(labels.begin(), labels.end(), 0u);
    else
      std::copy_n(start, rows.count, labels.begin());
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
    return at_once & must_stay(own, own_size, label, of[label].size);
  }

  const WeightedRows& graph;
  const bool at_once;                 // vertices move at the same time
  const double by_chance;             // of merge_gain()
  std::vector<std::uint32_t> labels;  // by vertex
  Buffer<OfLabel> of;                 // by label
};

}  // namespace plait
