// A rank's shard on its GPU, made there. It differs from Shard (shard.h) in the order of the halo
// and of a row's edges, which is the order in which rows arrive: own rows first, then blocks of the
// ranks after this one, and round: rank + 1, rank + 2, ..., rank - 1. Slots ascend within a row, so
// the edges that can be summed once some blocks, or parts of them, are here are a range of each
// row.
#pragma once

#include <cstdint>
#include <vector>

#include "plait/base/cuda/cuda.cuh"
#include "plait/graph/csr.h"
#include "plait/partition/partition.h"
#include "plait/placement/shard.h"

namespace plait {

// The rows of one other rank, or sums of them (cuda/block_sums.cuh; then it is neither whole nor
// listed).
struct HaloBlock {
  int owner = 0;
  std::uint64_t begin = 0;  // the block's first slot
  std::uint64_t rows = 0;
  bool whole = false;              // all rows of the owner, in order
  DeviceArray<std::uint32_t> row;  // if not whole: the owner's rows, ascending
};

// One rank's part of the graph. It owns its arrays, which are in memory of its GPU.
struct DeviceShard {
  int rank = 0;
  int ranks = 1;
  std::uint64_t own = 0;            // rows
  DeviceArray<EdgeOffset> offsets;  // own + 1
  DeviceArray<Slot> slots;          // one per edge
  DeviceArray<float> weights;       // one per edge, or empty
  std::vector<HaloBlock> halo;      // ranks - 1, in order of arrival
  EdgeOffset local_edges = 0;

  // Numbers of edges of own rows, and of slots.
  EdgeOffset edges() const { return slots.size(); }
  std::uint64_t slot_count() const {
    return halo.empty() ? own : halo.back().begin + halo.back().rows;
  }
};

// Options of placing rows.
struct DeviceShardOptions {
  HaloKind halo = HaloKind::dense;
  // as_given: slots do not ascend within a row, which can then only be summed as a whole.
  EdgeOrder order = EdgeOrder::local_first;
};

// Own rows whose edges are on the GPU, with neighbours by place (own_rows.h), ascending in a row
// unless EdgeOrder::as_given keeps their order.
template <VertexId V>
struct DeviceRowsCsr {
  DeviceArray<EdgeOffset> offsets;
  DeviceArray<V> neighbours;
  DeviceArray<float> weights;
};

// Places rows on the current GPU. Places of rank p are starts[p] .. starts[p + 1] - 1. Waits for
// the stream. Throws DoesNotFitError if the graph has 2^32 vertices or more or memory is short.
template <VertexId V>
DeviceShard make_device_shard(DeviceRowsCsr<V> rows, const std::vector<std::uint64_t>& starts,
                              int rank, const DeviceShardOptions& options, cudaStream_t stream);

// Returns the number of each slot's vertex: its global id, or from before renumbering.
DeviceArray<std::uint64_t> vertices_of_slots(const DeviceShard& shard, const Partition& partition);

// Returns bounds[i]: the first edge of row i whose slot is `slot` or above. Enqueued on the stream.
// Slots must ascend within rows.
DeviceArray<EdgeOffset> edges_from_slot(const DeviceShard& shard, std::uint64_t slot,
                                        cudaStream_t stream);

}  // namespace plait
