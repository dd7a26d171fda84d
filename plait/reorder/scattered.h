// Tells whether other ids of a graph's vertices should pay: `plait reorder` and `automatic`
// renumber by this rule, and `plait info` and plait.advise report what it says.
#pragma once

#include "plait/reorder/reorder.h"

namespace plait {

// Tells whether find_order() finds another order by `automatic`: whether the averaged edge span is
// above GNNAdvisor's bound (graph/statistics.h), and the order of communities makes it smaller by a
// tenth at least. Throws as find_order().
inline bool is_scattered(const ReorderInput& input) {
  return !find_order(ReorderMethod::automatic, input).order.empty();
}

}  // namespace plait
