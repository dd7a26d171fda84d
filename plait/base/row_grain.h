// The size of blocks in which rows of a graph are dealt out to threads.
#pragma once

#include <cstddef>

namespace plait {

// Rows of a block of parallel work (parallel_blocks()) that does little for each of them.
inline constexpr std::size_t kRowGrain = std::size_t{1} << 12;

}  // namespace plait
