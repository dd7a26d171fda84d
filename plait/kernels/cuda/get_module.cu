#include <fmt/format.h>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/setting.h"
#include "plait/kernels/cuda/get_module.cuh"

namespace plait {
namespace {

constexpr const char* kReaders[] = {"thread", "warp", "block"};  // by ReadBy

void check(cudaError_t status) {
  if (status == cudaErrorNoKernelImageForDevice) cudaGetLastError();
  require(status != cudaErrorNoKernelImageForDevice,
          "reads by NVSHMEM's device functions were not built for this GPU; build Plait on this "
          "machine, or use {}",
          setting("read-with", "addresses"));
  check_cuda(status, "the kernels that read by NVSHMEM's device functions");
}

}  // namespace

const GetModule& GetModule::load() {
  static const GetModule module;
  return module;
}

GetModule::GetModule() {
  require_get_module();
  check(cudaLibraryLoadData(&library_, get_module_image().data(), nullptr, nullptr, 0, nullptr,
                            nullptr, 0));
  for (int reader = 0; reader < 3; ++reader)
    for (const int vec : {1, 4}) {
      const std::string name = fmt::format("plait_get_{}_{}", kReaders[reader], vec);
      check(cudaLibraryGetKernel(&kernels_[reader][vec == 4], library_, name.c_str()));
      cudaFuncAttributes unused;  // CUDA loads the code when it is first asked for
      check(cudaFuncGetAttributes(&unused, kernels_[reader][vec == 4]));
    }
}

}  // namespace plait
