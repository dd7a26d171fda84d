#include "plait/base/cuda.h"
#include "plait/base/error.h"
#include "plait/base/memory.h"

namespace plait {

void check_cuda(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // what was reported is not reported again
  if (status == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw DoesNotFitError(fmt::format("{}: not enough is free: {} of {}; use more GPUs", what,
                                      format_bytes(free), format_bytes(total)));
  }
  throw Error(fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

}  // namespace plait
