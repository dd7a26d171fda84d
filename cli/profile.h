// --profile and --trace: where the time of a command went (plait/base/profile.h). On ranks,
// cli/ranks.cpp gathers the profiles; without ranks, there is one.
#pragma once

#include <functional>
#include <vector>

#include "cli/cli.h"
#include "plait/base/profile.h"

namespace plait::cli {

// The rate at which bytes could cross at best, for comparison.
struct MoveLimit {
  const char* name = "";        // "link", "memory copy"
  double bytes_per_second = 0;  // into one rank, with all ranks at work; 0: not known
};

// Calls `run`. If the session asks for a profile or a trace, notes phases meanwhile and reports
// them at the end, unless report_profile() has been called. If `run` throws, there is no report.
void with_profile(const Session& session, const std::function<void()>& run);
// Prints the table on stderr or, with --json, the result that was held back with the profile in it;
// writes the trace. Rank 0 calls it with the profiles of all ranks.
void report_profile(const Session& session, std::vector<Profile> ranks, const MoveLimit& limit);
// Keeps the result for report_profile(), if it is to have a profile. Returns whether it did.
bool hold_result(const json& result);

}  // namespace plait::cli
