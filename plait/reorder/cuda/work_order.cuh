// order_of_work (reorder/work_order.h) on the GPU: the same labels.
#pragma once

#include "plait/base/cuda/cuda.cuh"
#include "plait/reorder/work_order.h"

namespace plait {

// Returns one label per row. All pointers are to memory of the GPU, and there are fewer than 2^32 -
// 1 rows. Waits for the stream. Throws DoesNotFitError.
DeviceArray<std::uint32_t> order_of_work(const EdgeOffset* begin, const EdgeOffset* end,
                                         const Slot* columns, std::uint64_t rows,
                                         cudaStream_t stream);

}  // namespace plait
