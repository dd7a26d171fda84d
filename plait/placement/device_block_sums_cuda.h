// Blocks of a shard's halo that come as sums (block_sums.h), on the GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/placement/device_shard_cuda.h"

namespace plait {

// Sums of rows of one rank, in the order in which another has their slots: a CSR.
struct RowSums {
  DeviceArray<EdgeOffset> offsets;  // count() + 1; empty: no sums
  DeviceArray<std::uint32_t> row;   // of the rank that sums, one an edge
  DeviceArray<float> weights;       // one an edge, or empty

  std::uint64_t count() const { return offsets.size() == 0 ? 0 : offsets.size() - 1; }
  EdgeOffset edges() const { return row.size(); }
};

// Turns each block into sums of which fewer would come than rows (sums_are_fewer, quality.h). By
// block: what its owner is to sum, nothing for those that stay as they are. Takes, for a while, as
// much memory again as the shard.
std::vector<RowSums> contract_blocks(DeviceShard& shard, cudaStream_t stream);

}  // namespace plait
