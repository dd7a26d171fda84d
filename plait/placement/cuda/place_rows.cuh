// Makes a rank's shard on its GPU from rows that stand on the host.
#pragma once

#include <vector>

#include "plait/placement/cuda/shard.cuh"
#include "plait/placement/own_rows.h"

namespace plait {

// Places a rank's own rows (own_rows.h), whose neighbours are global ids. Throws as
// make_device_shard() does. Waits for the stream.
template <VertexId V>
DeviceShard place_rows(const Csr<V>& rows, const Partition& partition, int rank,
                       const DeviceShardOptions& options, cudaStream_t stream) {
  const Csr<V> ordered = by_place(rows, partition, options.order != EdgeOrder::as_given);
  const std::vector<EdgeOffset> none{0};
  return make_device_shard<V>(
      {DeviceArray<EdgeOffset>(ordered.offsets.empty() ? std::span<const EdgeOffset>(none)
                                                       : ordered.offsets.span()),
       DeviceArray<V>(ordered.neighbours.span()), DeviceArray<float>(ordered.weights.span())},
      place_starts(partition), rank, options, stream);
}

}  // namespace plait
