// The arrays of a dataset as the sections of a container.
#pragma once

#include <vector>

#include "plait/graph/dataset.h"
#include "plait/io/container_layout.h"

namespace plait::container {

struct Content {
  Kind kind{};
  Element element{};
  Bytes bytes;  // of the dataset's array
};

// In the order of kinds; arrays that are empty are left out, but for offsets and neighbours.
std::vector<Content> contents_of(const Dataset& dataset);

}  // namespace plait::container
