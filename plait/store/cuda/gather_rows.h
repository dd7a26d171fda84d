// Gathers and adds rows on a GPU (store/gather_rows.h). This header needs no header of CUDA.
//
// Bases of ranks, ids, results and translation arrays are in memory that the current GPU reaches:
// its own, other GPUs' (over NVLink) or mapped host memory.
#pragma once

#include "plait/store/gather_rows.h"

namespace plait {

// Enqueues the copy on the cudaStream_t.
void gpu_gather_rows(const GatherRows& args, void* stream);
// Enqueues the sums on the cudaStream_t, by atomic additions, which other GPUs may make in the same
// rows at the same time. So sums of three and more numbers may differ in their last bits.
void gpu_add_rows(const AddRows& args, void* stream);

}  // namespace plait
