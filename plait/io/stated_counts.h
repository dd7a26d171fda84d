// The counts that a file states at its beginning, so that memory can be planned before it is read.
#pragma once

#include <optional>
#include <string>

#include "plait/graph/counts.h"

namespace plait {

// Returns the counts in the header of a .plait file; nothing for other files, and for headers that
// promise more than the file holds. Nothing else is checked: reading the file does that.
std::optional<GraphCounts> stated_counts(const std::string& path);

}  // namespace plait
