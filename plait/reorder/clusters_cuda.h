// find_clusters (reorder/clusters.h) on the GPU: the same labels.
#pragma once

#include "plait/base/cuda.h"
#include "plait/reorder/clusters.h"

namespace plait {

// All pointers are to memory of the GPU. Below 2^32 - 1 rows.
DeviceArray<std::uint32_t> find_clusters(const EdgeOffset* begin, const EdgeOffset* end,
                                         const Slot* columns, std::uint64_t rows, int rounds,
                                         cudaStream_t stream);

}  // namespace plait
