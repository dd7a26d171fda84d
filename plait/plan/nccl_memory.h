// The memory that NCCL takes on a GPU.
#pragma once

#include <cstdint>

namespace plait {

// Returns the bytes on each GPU of so many ranks. NCCL keeps buffers for every peer. Measured on 2
// and 4 H200s (docs/performance.md), where sends and receives took the most: 0.97 and 1.71 GiB;
// extrapolated for more.
constexpr std::uint64_t nccl_memory(std::uint64_t ranks) { return (230 + 380 * ranks) << 20; }

}  // namespace plait
