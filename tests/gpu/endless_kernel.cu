#include "plait/base/cuda/cuda.cuh"
#include "tests/gpu/endless_kernel.h"

namespace plait::test {
namespace {

__global__ void endless_kernel() {
  for (;;) __nanosleep(1000);
}

}  // namespace

void launch_endless_kernel(cudaStream_t stream) {
  endless_kernel<<<1, 1, 0, stream>>>();
  check_cuda(cudaGetLastError(), "an endless kernel");
}

}  // namespace plait::test
