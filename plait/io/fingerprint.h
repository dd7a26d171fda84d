// Facts that tell one dataset from another, for ranks that must have read the same data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plait/graph/dataset.h"

namespace plait {

// Pairs of a name and a value.
using Fingerprint = std::vector<std::pair<std::string, std::string>>;

// Returns the counts of a dataset and a checksum of each array. Equal for datasets of the same
// content, whatever their name and the formats that they were read from. For arrays from a
// container, the checksums that its reader has verified are taken (Dataset::checked): these arrays,
// which may be larger than memory, are not read again.
Fingerprint fingerprint(const Dataset& dataset);
// Returns a checksum of the dataset's vertices, edges and their weights alone, made in the same
// way.
std::string graph_checksum(const Dataset& dataset);

}  // namespace plait
