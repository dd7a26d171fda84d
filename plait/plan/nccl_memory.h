// The memory that NCCL takes on a GPU.
#pragma once

#include <cstdint>

namespace plait {

// Measured (docs/performance.md).
inline constexpr std::uint64_t kNcclMemory = std::uint64_t{960} << 20;

}  // namespace plait
