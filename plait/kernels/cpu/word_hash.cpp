#include "plait/kernels/word_hash.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "plait/base/parallel.h"

namespace plait {

WordHash hash_words(std::span<const std::byte> bytes) {
  constexpr std::size_t kGrain = std::size_t{1}
                                 << 14;  // some 50 us of work, several starts of threads
  std::atomic<std::uint64_t> low{0}, high{0};
  parallel_blocks((bytes.size() + 7) / 8, kGrain, [&](std::size_t begin, std::size_t end) {
    WordHash here;
    for (std::size_t i = begin; i < end; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + 8 * i, std::min<std::size_t>(8, bytes.size() - 8 * i));
      here.add(word, i);
    }
    low.fetch_add(here.low, std::memory_order_relaxed);
    high.fetch_add(here.high, std::memory_order_relaxed);
  });
  return {low, high};
}

}  // namespace plait
