// For a build without CUDA.
#include "plait/base/error.h"
#include "plait/base/gpu.h"

namespace plait {

bool built_with_cuda() { return false; }
int gpu_count() { return 0; }
std::vector<Gpu> list_gpus() { return {}; }
void use_gpu(int) {
  throw UsageError("this build has no GPU engine; build it where nvcc is found, or use --ranks");
}
int current_gpu() { return 0; }
std::uint64_t gpu_free_memory(std::uint64_t) { return 0; }
std::uint64_t gpu_used_memory() { return 0; }
GpuId current_gpu_id() { return {}; }
bool gpu_reaches(const GpuId&) { return true; }
std::string gpu_kernel_fault(int) { return "this build has no GPU engine"; }
void release_gpu_caches() {}
void set_gpu_cache_release(void (*)()) {}
void wait_for_gpu() {}

}  // namespace plait
