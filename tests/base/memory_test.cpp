#include "plait/base/memory.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <vector>

namespace plait {
namespace {

// Takes and frees 32 MiB. Returns whether the system has got most of them back.
bool freed_memory_goes_back() {
  const std::uint64_t before = held_memory();
  std::vector<std::vector<char>>(4, std::vector<char>(8 << 20, 1)).clear();
  return held_memory() < before + (8 << 20);
}

// Other processes do this, because the setting is the whole process's.
TEST(Memory, IsKeptAfterItWasFreed) {
#ifdef PLAIT_SANITIZED
  GTEST_SKIP() << "a sanitizer brings its own allocator";
#endif
  constexpr int kDefault = 128 << 10;  // blocks that other tests have freed may have raised it
  EXPECT_EXIT((mallopt(M_MMAP_THRESHOLD, kDefault), std::_Exit(freed_memory_goes_back() ? 3 : 4)),
              testing::ExitedWithCode(3), "");
  EXPECT_EXIT((keep_freed_memory(), std::_Exit(freed_memory_goes_back() ? 3 : 4)),
              testing::ExitedWithCode(4), "");
}

}  // namespace
}  // namespace plait
