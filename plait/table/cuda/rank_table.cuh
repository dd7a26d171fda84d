// The bases and the first ids of ranks in shared memory, where lanes of a warp may ask for
// different ones at once.
#pragma once

#include "plait/table/stored_rows.h"

namespace plait {

struct RankTable {
  const std::byte* base[kMostStoreRanks + 1];
  std::uint64_t starts[kMostStoreRanks + 1];

  // Called by all threads of the block.
  __device__ void fill(const StoredRows& rows) {
    for (int r = static_cast<int>(threadIdx.x); r <= rows.ranks;
         r += static_cast<int>(blockDim.x)) {
      base[r] = rows.base[r];
      starts[r] = rows.starts[r];
    }
    __syncthreads();
  }
  __device__ const std::byte* row(const StoredRows& rows, RowPlace place) const {
    return base[place.rank] + place.row * rows.stride;
  }
};

}  // namespace plait
