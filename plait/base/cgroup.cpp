#include "plait/base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace plait {
namespace {

constexpr auto kUnlimited = std::numeric_limits<std::uint64_t>::max();

// The names of one version's files and fields. Page cache counts as used, but is given back on
// demand, so only memory that no file backs is held against a limit.
struct Version {
  const char* limit;
  std::initializer_list<std::string_view> used;  // fields of memory.stat
};
const Version kFirst{"memory.limit_in_bytes", {"total_rss", "total_shmem"}};
const Version kSecond{"memory.max", {"anon", "shmem", "kernel"}};

// Returns what is left in one group; "max" is no number.
std::uint64_t left_in(const std::string& folder, const Version& version) {
  std::ifstream file(folder + "/" + version.limit);
  std::uint64_t limit = 0;
  if (!(file >> limit)) return kUnlimited;
  std::ifstream stat(folder + "/memory.stat");
  std::string key;
  std::uint64_t value = 0, used = 0;
  while (stat >> key >> value)
    if (std::ranges::find(version.used, key) != version.used.end()) used += value;
  return limit - std::min(limit, used);
}

// Returns the least that is left in a group and those above it.
std::uint64_t left_up_from(const std::string& root, std::string group, const Version& version) {
  std::uint64_t least = left_in(root, version);
  while (group.size() > 1) {
    least = std::min(least, left_in(root + group, version));
    group.erase(group.rfind('/'));
  }
  return least;
}

}  // namespace

// Lines are "ID:CONTROLLERS:GROUP"; version 2 has no controllers. Where a container sees the host's
// names of groups, their folders are not there, and its own group is the root.
std::uint64_t cgroup_available(const std::string& self, const std::string& root) {
  std::uint64_t least = std::min(left_in(root, kSecond), left_in(root + "/memory", kFirst));
  std::ifstream file(self);
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos || line.find('/', second) != second + 1) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      group = line.substr(second + 1);
    if (controllers.empty())
      least = std::min(least, left_up_from(root, group, kSecond));
    else if ((',' + controllers + ',').find(",memory,") != std::string::npos)
      least = std::min(least, left_up_from(root + "/memory", group, kFirst));
  }
  return least;
}

}  // namespace plait
