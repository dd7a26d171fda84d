#include "plait/base/processor.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace plait {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

std::uint64_t processor_cache() {
  long most = 0;
  for (const int cache : {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE})
    most = std::max(most, ::sysconf(cache));
  return static_cast<std::uint64_t>(most);
}

}  // namespace plait
