// Loops: edges from a vertex to itself.
#pragma once

#include <vector>

#include "plait/graph/csr.h"

namespace plait {

// Returns the graph without its loops; the same arrays if there are none. Uses all threads.
AnyCsr without_loops(const AnyCsr& graph);

// Returns the values of the edges that without_loops() keeps, from one per edge of the graph; the
// same array if there are no loops.
Array<std::int64_t> without_loops(const AnyCsr& graph, const Array<std::int64_t>& values);

// Returns the weight of the last loop of each vertex, 1 where there is none; nothing if all are 1.
std::vector<float> loop_weights(const AnyCsr& graph);

}  // namespace plait
