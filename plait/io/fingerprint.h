// What tells one dataset from another, for ranks that must have read the same.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plait/graph/dataset.h"

namespace plait {

// As (what it is, value).
using Fingerprint = std::vector<std::pair<std::string, std::string>>;

// Its counts and a checksum of each array. Equal for datasets of the same
// content, whatever their name and the formats that they were read from. Of arrays that a container
// has brought, the checksums that its reader has found right are taken (Dataset::checked): these
// arrays, which may be larger than memory, are not read again.
Fingerprint fingerprint(const Dataset& dataset);

}  // namespace plait
