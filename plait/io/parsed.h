// What a file holds, before its graph is built.
#pragma once

#include <string>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/graph/edge_list.h"

namespace plait {

struct ParsedDataset {
  AnyEdgeList edges;
  Dataset dataset;                    // all but its graph
  std::vector<std::string> warnings;  // what was left out and why, a line each
};

}  // namespace plait
