// The state of the local moves (moves.h) on the CPU. Internal to this room.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "plait/base/array.h"
#include "plait/communities/moves_rule.h"
#include "plait/communities/quotient.h"

namespace plait {

// The communities of one label.
struct OfLabel {
  std::uint64_t ends;  // of edges at them
  std::uint32_t size;  // how many there are
};

struct MoveState {
  // Each community has its own label. The graph has to outlive this.
  MoveState(const Quotient& quotient, double resolution, bool moves_at_once)
      : graph(quotient),
        at_once(moves_at_once),
        by_chance(resolution / static_cast<double>(quotient.total)),
        labels(quotient.communities()),
        of(quotient.communities()) {
    std::iota(labels.begin(), labels.end(), 0u);
    for (std::uint32_t c = 0; c < labels.size(); ++c) of[c] = {quotient.degrees[c], 1};
  }

  // Returns whether the label is another one than before.
  bool set_label(std::uint32_t c, std::uint32_t label) {
    const std::uint32_t from = labels[c];
    if (label == from) return false;
    of[from].ends -= graph.degrees[c], --of[from].size;
    of[label].ends += graph.degrees[c], ++of[label].size;
    labels[c] = label;
    return true;
  }

  // Tells whether a community must not take a label. One that moves alone may take any.
  bool bars(std::uint32_t own, std::uint32_t own_size, std::uint32_t label) const {
    return at_once & must_stay(own, own_size, label, of[label].size);
  }

  const Quotient& graph;
  const bool at_once;                 // communities move at the same time
  const double by_chance;             // of merge_gain()
  std::vector<std::uint32_t> labels;  // by community
  Buffer<OfLabel> of;                 // by label
};

}  // namespace plait
