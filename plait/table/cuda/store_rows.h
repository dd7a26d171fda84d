// Stores rows on a GPU, with the bits of store_rows(). This header needs no header of CUDA.
#pragma once

#include "plait/table/store_rows.h"

namespace plait {

// Enqueues it on the cudaStream_t. Rows and results are in memory that the current GPU reaches.
// Floats stand at multiples of 4 bytes, results at multiples of their element, and scales at
// multiples of 4.
void gpu_store_rows(const StoreRows& args, void* stream);

}  // namespace plait
