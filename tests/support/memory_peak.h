// The most memory that this process holds from some moment on, above the memory that it holds then.
#pragma once

#include <malloc.h>

#include <fstream>

#include "plait/base/memory.h"

namespace plait::test {

class MemoryPeak {
 public:
  MemoryPeak() : before_((malloc_trim(0), reset(), peak_memory())) {}
  std::uint64_t bytes() const { return peak_memory() - before_; }

 private:
  // From here on, the peak of the process (VmHWM) is counted from its present memory.
  static void reset() { std::ofstream("/proc/self/clear_refs") << "5"; }
  std::uint64_t before_;
};

}  // namespace plait::test
