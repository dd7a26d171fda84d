// The profiles of all ranks in one table, whose times add up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plait/base/profile.h"

namespace plait {

// A phase on all ranks, or the time of an outer phase outside of its inner ones.
struct ProfileRow {
  std::string name;  // "other" for the time outside
  std::string path;  // names from the outermost phase on: "epoch/forward"
  std::size_t depth = 0;
  bool moves = false;                           // bytes cross in it, and it has no inner phases
  std::vector<std::uint64_t> calls, ns, bytes;  // by rank; bytes with those of inner phases
};

// Returns the rows of a table: an outer phase, then its inner ones in the order in which they were
// first entered, then the rest of its time, if it has inner phases. The last row is the time
// outside of all phases. On each rank, the times of the outermost rows add up to the profile's, and
// those of inner rows to the outer row's. A rank that has not entered a phase has zeros.
std::vector<ProfileRow> profile_table(const std::vector<Profile>& ranks);

}  // namespace plait
