// The arrays of a dataset as the sections of a container.
#pragma once

#include <vector>

#include "plait/graph/dataset.h"
#include "plait/io/container_layout.h"

namespace plait::container {

// An array of a dataset, and the section that it becomes.
struct Content {
  Kind kind{};
  Element element{};
  Bytes bytes;  // a view of the dataset's array
};

// Returns the sections in the order of kinds. Empty arrays are left out, except offsets and
// neighbours.
std::vector<Content> contents_of(const Dataset& dataset);

}  // namespace plait::container
