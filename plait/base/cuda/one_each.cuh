// One thread for each of some items.
#pragma once

#include <cstdint>

namespace plait {

inline constexpr int kThreadsOfItems = 256;  // of a block

// Returns the blocks for so many threads.
inline unsigned blocks_of_items(std::uint64_t threads) {
  return static_cast<unsigned>((threads + kThreadsOfItems - 1) / kThreadsOfItems);
}
// Returns the number of this thread among those of all blocks.
__device__ inline std::uint64_t item_of_thread() {
  return blockIdx.x * std::uint64_t{kThreadsOfItems} + threadIdx.x;
}

}  // namespace plait
