// The content of a file before its graph is built.
#pragma once

#include <string>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/graph/edge_list.h"

namespace plait {

// Edges, and everything else that the file holds.
struct ParsedDataset {
  AnyEdgeList edges;
  Dataset dataset;                    // everything but its graph
  std::vector<std::string> warnings;  // parts that were left out and why, one line each
};

}  // namespace plait
