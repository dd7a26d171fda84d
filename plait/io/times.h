// Times of a graph's vertices or edges, which temporal samples read: a .npy file with one dimension
// of integers.
#pragma once

#include <string>

#include "plait/graph/dataset.h"

namespace plait {

// Return the times in the order of the dataset's vertices or edges. The file has them in the order
// of the graph before it was renumbered: by number of the vertex; or by the edge's target, then by
// its source, as rows lie in a .plait file. Throw InputError for another shape or type.
Array<std::int64_t> read_vertex_times(const std::string& path, const Dataset& dataset);
Array<std::int64_t> read_edge_times(const std::string& path, const Dataset& dataset);

}  // namespace plait
