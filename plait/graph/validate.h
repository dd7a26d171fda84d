// Checks of what comes from outside, and questions about a graph as a whole.
#pragma once

#include <string>

#include "plait/graph/dataset.h"

namespace plait {

// Throws InputError, naming `file`, the array, the place and the value, unless
//   - offsets start at 0, do not decrease and end at the number of neighbours;
//   - every neighbour is below the number of vertices;
//   - weights and features are finite; sparse feature columns are below the width;
//   - arrays have one entry a vertex or an edge;
//   - labels are in -1 .. classes - 1, splits in 0 .. 3.
void validate(const Dataset& dataset, const std::string& file);

// Whether every edge has its reverse with the same weight, parallel edges counted.
// Rows must be sorted by neighbour. O(edges), all threads.
bool is_symmetric(const AnyCsr& graph);

}  // namespace plait
