// How many blocks of the kernel of strategy `get` a multiprocessor of this GPU has at once, as the
// driver tells it for the compiled kernel: its registers are known to the compiler alone.
#pragma once

#include <cstdint>

#include "plait/plan/get_tuning.h"

namespace plait {

struct GetOccupancy {
  std::uint64_t blocks = 0;      // on one multiprocessor at once
  std::uint64_t warps = 0;       // of one block
  std::uint64_t most_warps = 0;  // that one multiprocessor can have
  std::uint64_t registers = 0;   // of one thread

  // Returns the share of the warps that a multiprocessor can have.
  double share() const {
    return static_cast<double>(blocks * warps) / static_cast<double>(most_warps);
  }
};

// Returns the occupancy of the current GPU by the kernel that sums rows of `width` floats without
// weights, padded as in the heap and read at addresses (ReadWith::addresses). Throws as spmm_get(),
// and UsageError without a GPU.
GetOccupancy get_occupancy(const GetTuning& tuning, std::uint64_t width);

}  // namespace plait
