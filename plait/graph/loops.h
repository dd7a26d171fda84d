// Loops: edges from a vertex to itself.
#pragma once

#include <vector>

#include "plait/graph/csr.h"

namespace plait {

// Returns the graph without its loops; the same arrays if there are none. Uses all threads.
AnyCsr without_loops(const AnyCsr& graph);

// Returns the weight of the last loop of each vertex, 1 where there is none; nothing if all are 1.
std::vector<float> loop_weights(const AnyCsr& graph);

}  // namespace plait
