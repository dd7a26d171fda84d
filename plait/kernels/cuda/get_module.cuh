// The kernels of strategy get that read by NVSHMEM's device functions (nvshmem/get_kernels.cu),
// loaded into this process.
#pragma once

#include <cuda_runtime_api.h>

#include "plait/kernels/cuda/get_module.h"
#include "plait/plan/get_tuning.h"

namespace plait {

// Made once, it lives as long as the process, as NVSHMEM keeps the address of the module's state.
class GetModule {
 public:
  // Returns the module, which the first call loads for the current GPU. NVSHMEM has to prepare it
  // before a kernel runs. Throws as require_get_module(), and an Error if it was not built for this
  // GPU.
  static const GetModule& load();

  // Returns the module's handle of CUDA's driver (CUlibrary).
  void* handle() const { return library_; }
  // Returns the kernel in which these threads read a row together and a lane sums `vec` floats of
  // it, 1 or 4, for cudaLaunchKernel(). Its arguments are a GetView and the number of lanes, as
  // int.
  const void* kernel(ReadBy read_by, int vec) const {
    return kernels_[static_cast<int>(read_by)][vec == 4];
  }

 private:
  GetModule();

  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernels_[3][2] = {};  // by ReadBy, and for 1 and 4 floats
};

}  // namespace plait
