// The hash of memory: the same for any number of threads, another one for any change.
#include "plait/kernels/word_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "plait/base/parallel.h"

namespace plait {
namespace {

std::vector<std::byte> some_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
  return bytes;
}

std::pair<std::uint64_t, std::uint64_t> hash_of(const std::vector<std::byte>& bytes) {
  const WordHash hash = hash_words(bytes);
  return {hash.low, hash.high};
}

TEST(WordHash, EveryByteAndPlaceCounts) {
  const std::vector<std::byte> bytes = some_bytes(1003);
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen{hash_of(bytes)};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> changed = bytes;
    changed[i] ^= std::byte{1};
    EXPECT_TRUE(seen.insert(hash_of(changed)).second) << i;
  }
  std::vector<std::byte> swapped = bytes;
  std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + 8);
  EXPECT_TRUE(seen.insert(hash_of(swapped)).second);
}

TEST(WordHash, DoesNotDependOnThreads) {
  const std::vector<std::byte> bytes = some_bytes((std::size_t{1} << 21) + 5);
  const auto wanted = hash_of(bytes);
  for (const int count : {1, 2, 3}) {
    const ThreadCount threads(count);
    EXPECT_EQ(hash_of(bytes), wanted);
  }
}

}  // namespace
}  // namespace plait
