#include "plait/kernels/cpu/philox8.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(Philox8, WritesTheBlocksOfEightCounters) {
  // The last two carry from word to word, and over the end.
  for (const std::uint64_t seed : {0x0ull, 0x123456789abcdefull, ~0x0ull})
    for (const std::uint64_t low : {0x0ull, 0x77ull, 0x8000000012345678ull, ~0x0ull})
      for (const std::uint64_t high : {0x0ull, 0xfe00000000000001ull, 0xfffffffdull, ~0x0ull - 4}) {
        const Philox philox(seed);
        std::uint32_t words[kPhilox8Words];
        philox8(philox, low, high, words);
        for (std::uint64_t i = 0; i < 8; ++i)
          for (std::size_t w = 0; w < 4; ++w)
            ASSERT_EQ(words[4 * i + w], philox(low, high + i)[w])
                << seed << ' ' << low << ' ' << high << " block " << i << " word " << w;
      }
}

}  // namespace
}  // namespace plait
