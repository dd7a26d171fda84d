// The bytes that a rank's GPU holds of an array that is shared out: whole pages, the same on all.
#include "plait/table/sharded/cuda/gpu_array.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(ShardedBytes, AreWholePagesThatHoldAll) {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  EXPECT_EQ(sharded_bytes(0, 3), kPage);
  EXPECT_EQ(sharded_bytes(1, 4), kPage);
  EXPECT_EQ(sharded_bytes(4 * kPage, 4), kPage);
  EXPECT_EQ(sharded_bytes(4 * kPage + 1, 4), 2 * kPage);
  for (const int ranks : {1, 2, 3, 72})
    for (const std::size_t bytes : {std::size_t{5}, 17 * kPage - 3, 1000 * kPage})
      EXPECT_GE(sharded_bytes(bytes, ranks) * static_cast<std::size_t>(ranks), bytes);
}

}  // namespace
}  // namespace plait
