// What tells one dataset from another, for ranks that must have read the same.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plait/graph/dataset.h"

namespace plait {

// Its counts and a checksum of each array, as (what it is, value). Equal for datasets of the same
// content, whatever their name and the formats that they were read from. Of arrays that a container
// has brought, the checksums that its reader has found right are taken (Dataset::checked): these
// arrays, which may be larger than memory, are not read again.
std::vector<std::pair<std::string, std::string>> fingerprint(const Dataset& dataset);

}  // namespace plait
