// For a build without CUDA.
#include "plait/base/gpu.h"
#include "plait/kernels/gpu_dropout.h"

namespace plait {

void gpu_drop_rows(const DropoutStep&, const DropoutRows&, void*) {
  use_gpu(0);  // throws
}

}  // namespace plait
