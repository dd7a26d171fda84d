// find_clusters (communities/clusters.h) on the GPU: the same labels.
#pragma once

#include "plait/base/cuda/cuda.cuh"
#include "plait/communities/clusters.h"

namespace plait {

// Returns one label per row. All pointers are to memory of the GPU, and there are fewer than 2^32 -
// 1 rows. Waits for the stream. Throws DoesNotFitError.
DeviceArray<std::uint32_t> find_clusters(const EdgeOffset* begin, const EdgeOffset* end,
                                         const Slot* columns, std::uint64_t rows, int rounds,
                                         cudaStream_t stream);

}  // namespace plait
