// The memory that control groups leave to this process: containers, batch systems and systemd limit
// it so.
#pragma once

#include <cstdint>
#include <string>

namespace plait {

// Returns the bytes that can still be taken before a limit of this process' cgroup, or of one above
// it, is reached; the largest number without a limit. Reads versions 1 and 2 of cgroups: `self`
// lists the groups of the process, and `root` is where they are mounted.
std::uint64_t cgroup_available(const std::string& self = "/proc/self/cgroup",
                               const std::string& root = "/sys/fs/cgroup");

}  // namespace plait
