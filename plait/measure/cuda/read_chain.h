// The latency of memory that a GPU reads (measure/read_chain.h). This header needs no header of
// CUDA.
#pragma once

#include "plait/measure/read_chain.h"

namespace plait {

// As time_read_chain(), for the current GPU of each rank.
std::vector<double> time_gpu_read_chain(World& world, const ChainQuestion& question);

}  // namespace plait
