// A scope whose work goes to one GPU.
#pragma once

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/gpu.h"

namespace plait {

// Sends this thread's work to one GPU until the end of the scope.
class OnGpu {
 public:
  explicit OnGpu(int index) : before_(current_gpu()) { use_gpu(index); }
  ~OnGpu() { cudaSetDevice(before_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

 private:
  int before_;
};

}  // namespace plait
