// Blocks of a shard's halo that come as sums (block_sums.h), on the GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/placement/cuda/shard.cuh"

namespace plait {

// Sums of rows of one rank, in the order in which another rank has their slots: a CSR in memory of
// the GPU.
struct RowSums {
  DeviceArray<EdgeOffset> offsets;  // count() + 1; empty: no sums
  DeviceArray<std::uint32_t> row;   // one per edge: a row of the rank that sums
  DeviceArray<float> weights;       // one per edge, or empty

  // The number of sums, and of edges in them.
  std::uint64_t count() const { return offsets.size() == 0 ? 0 : offsets.size() - 1; }
  EdgeOffset edges() const { return row.size(); }
};

// Turns a block into sums if fewer sums than rows of it would come (sums_are_fewer, quality.h).
// Returns by block the sums that its owner is to make, none for blocks that stay as they are.
// Takes, for a while, as much memory again as the shard. Waits for the stream. Throws
// DoesNotFitError.
std::vector<RowSums> contract_blocks(DeviceShard& shard, cudaStream_t stream);

}  // namespace plait
