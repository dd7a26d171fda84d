// Parts of a dataset that a graph format has no place for.
#pragma once

#include <string>
#include <vector>

#include "plait/graph/dataset.h"

namespace plait {

// The parts of a dataset that files of a format hold. A format without weights is no case of its
// own, because its writer refuses a weighted graph.
enum class Holds {
  everything,     // the graph and all that is known of its vertices
  graph,          // only the graph
  edges_and_ids,  // only edges, by the original ids of their vertices
  edges,          // only edges, by the numbers of their vertices
};

// Returns one line for each kind of data that such a file leaves out: "features and labels are left
// out", "2 vertices without edges are left out". Takes one pass over the graph for formats without
// vertices.
std::vector<std::string> left_out(const Dataset& dataset, Holds holds);

}  // namespace plait
