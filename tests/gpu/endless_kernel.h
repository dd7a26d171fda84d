// For tests: a kernel that never ends.
#pragma once

#include <cuda_runtime_api.h>

namespace plait::test {

// Enqueues it. Later work on the stream never runs; the end of the process ends it.
void launch_endless_kernel(cudaStream_t stream);

}  // namespace plait::test
