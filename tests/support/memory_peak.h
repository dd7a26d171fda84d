// The most memory that this process holds from some moment on, beside what it holds then.
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
  // What the process has had at most (VmHWM) is from here on what it has now.
  static void reset() { std::ofstream("/proc/self/clear_refs") << "5"; }
  std::uint64_t before_;
};

}  // namespace plait::test
