// The undirected simple graph in a graph: an edge between two vertices if any edge leads from one
// to the other, and no loops.
#pragma once

#include "plait/frontier/graph.h"

namespace plait {

// Tells whether a row has an edge to this slot. Its edges ascend by the numbers of their slots.
PLAIT_HOST_DEVICE inline bool has_edge(const GraphView& view, const SlotEdges& edges,
                                       std::uint64_t row, Slot slot) {
  const std::uint64_t number = view.number(slot);
  EdgeOffset low = edges.begin[row];
  for (EdgeOffset high = edges.end[row]; low < high;) {
    const EdgeOffset middle = low + (high - low) / 2;
    view.number(edges.slots[middle]) < number ? low = middle + 1 : high = middle;
  }
  return low < edges.end[row] && edges.slots[low] == slot;
}

// Tells whether edge e of view.all, from a row to a slot, stands for an edge of the simple graph:
// one of all edges between two vertices does.
PLAIT_HOST_DEVICE inline bool is_simple_edge(const GraphView& view, std::uint64_t row, Slot slot,
                                             EdgeOffset e) {
  if (slot == row) return false;
  const bool inward = e < view.in.end[row];
  const EdgeOffset first = inward ? view.in.begin[row] : view.out.begin[row];
  if (e > first && view.all.slots[e - 1] == slot) return false;  // parallel edges are adjacent
  return inward || !has_edge(view, view.in, row, slot);
}

}  // namespace plait
