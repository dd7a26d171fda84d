// A rank's shard on its GPU, made there. As Shard (shard.h), but for the order of the halo and of a
// row's edges, which is that in which rows arrive: own rows first, then blocks of the ranks after
// this one, and round: rank + 1, rank + 2, ..., rank - 1. Slots ascend within a row, so what can be
// summed once some blocks, or parts of them, are here is a range of each row.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/base/cuda.h"
#include "plait/graph/csr.h"
#include "plait/partition/partition.h"
#include "plait/placement/shard.h"

namespace plait {

// The rows of one other rank, or sums of them (device_block_sums_cuda.h), neither whole nor listed.
struct HaloBlock {
  int owner = 0;
  std::uint64_t begin = 0;  // its first slot
  std::uint64_t rows = 0;
  bool whole = false;              // all rows of the owner, in order
  DeviceArray<std::uint32_t> row;  // else: which, ascending
};

struct DeviceShard {
  int rank = 0;
  int ranks = 1;
  std::uint64_t own = 0;            // rows
  DeviceArray<EdgeOffset> offsets;  // own + 1
  DeviceArray<Slot> slots;          // one an edge
  DeviceArray<float> weights;       // one an edge, or empty
  std::vector<HaloBlock> halo;      // ranks - 1, in order of arrival
  EdgeOffset local_edges = 0;

  EdgeOffset edges() const { return slots.size(); }
  std::uint64_t slot_count() const {
    return halo.empty() ? own : halo.back().begin + halo.back().rows;
  }
};

struct DeviceShardOptions {
  HaloKind halo = HaloKind::dense;
  // as_given: slots do not ascend within a row, which can then only be summed as a whole.
  EdgeOrder order = EdgeOrder::local_first;
};

// Own rows whose edges are on the GPU, with neighbours by place (own_rows.h), ascending in a row
// unless they are to keep their order.
template <VertexId V>
struct DeviceRowsCsr {
  DeviceArray<EdgeOffset> offsets;
  DeviceArray<V> neighbours;
  DeviceArray<float> weights;
};

// Places of rank p are starts[p] .. starts[p + 1] - 1. Throws DoesNotFitError if there are 2^32
// slots or more, or too little memory.
template <VertexId V>
DeviceShard make_device_shard(DeviceRowsCsr<V> rows, const std::vector<std::uint64_t>& starts,
                              int rank, const DeviceShardOptions& options, cudaStream_t stream);

// The global id of each slot.
DeviceArray<std::uint64_t> vertices_of_slots(const DeviceShard& shard, const Partition& partition);

// bounds[i]: the first edge of row i whose slot is `slot` or above.
DeviceArray<EdgeOffset> edges_from_slot(const DeviceShard& shard, std::uint64_t slot,
                                        cudaStream_t stream);

}  // namespace plait
