// The edges from which a hop was drawn by values, on a GPU (sample/eligible_edges.h). This header
// needs no header of CUDA.
#pragma once

#include "plait/sample/cuda/neighbours.h"
#include "plait/sample/eligible_edges.h"

namespace plait {

struct GpuHopByValues {
  const GpuSample& sample;
  const GpuSample::Hop& hop;
  bool again = false;  // edges were drawn with replacement
};

// Enqueues the writing of the numbers on the cudaStream_t. All pointers are to memory that the
// current GPU reaches.
void gpu_eligible_edges(const GpuCsr& graph, const GpuSampleValues& values,
                        const GpuHopByValues& drawn, const EligibleArrays& to, void* stream);

}  // namespace plait
