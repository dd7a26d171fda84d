// For a build without CUDA.
#include "plait/aggregate/gpu_all_reduce.h"
#include "plait/base/gpu.h"

namespace plait {

std::unique_ptr<GpuAllReduce> make_gpu_all_reduce(World&, void*) {
  use_gpu(0);  // throws
  return nullptr;
}

}  // namespace plait
