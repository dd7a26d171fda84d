#include "plait/base/cuda.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"

namespace plait {

bool built_with_cuda() { return true; }

int gpu_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

std::vector<Gpu> list_gpus() {
  const int count = gpu_count();
  std::vector<Gpu> gpus;
  for (int g = 0; g < count; ++g) {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, g), "a GPU's properties");
    Gpu gpu;
    gpu.name = properties.name, gpu.major = properties.major, gpu.minor = properties.minor;
    check_cuda(cudaSetDevice(g), "a GPU");
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "a GPU's memory");
    gpu.memory = total, gpu.free = free;
    for (int peer = 0; peer < count; ++peer) {
      int reaches = peer == g;
      if (peer != g) check_cuda(cudaDeviceCanAccessPeer(&reaches, g, peer), "peer access");
      gpu.reaches.push_back(reaches != 0);
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

void use_gpu(int index) {
  const int count = gpu_count();
  require<UsageError>(index >= 0 && index < count, "GPU {} is not there: this host has {}", index,
                      count);
  check_cuda(cudaSetDevice(index), "a GPU");
  check_cuda(cudaFree(nullptr), "a GPU");  // makes its context now
}

int current_gpu() {
  int index = 0;
  check_cuda(cudaGetDevice(&index), "the current GPU");
  return index;
}

std::uint64_t gpu_free_memory() {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "the GPU's memory");
  return free;
}

void wait_for_gpu() { check_cuda(cudaDeviceSynchronize(), "work on the GPU"); }

}  // namespace plait
