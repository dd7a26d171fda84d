// The GPUs of this host, seen without CUDA's headers. A build without CUDA has none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace plait {

struct Gpu {
  std::string name;
  int major = 0, minor = 0;            // compute capability
  std::uint64_t memory = 0, free = 0;  // bytes
  // For each GPU of this host, whether it can be reached by loads and stores.
  std::vector<bool> reaches;
  int links = 0;                 // NVLinks that are up
  std::string link = "unknown";  // "NVLink, 18 x 26.6 GB/s", "PCIe 5 x16", or "unknown"
};

// Whether this build has the GPU engine.
bool built_with_cuda();
// GPUs that this process may use; 0 also where there is no driver.
int gpu_count();
// Makes contexts on all of them: slow.
std::vector<Gpu> list_gpus();
// This thread's work goes to that GPU from here on. Throws UsageError if it is not there.
void use_gpu(int index);
// The GPU that this thread's work goes to.
int current_gpu();
// Bytes that are free on it, to one who wants `wanted`: where fewer are, caches are asked first.
std::uint64_t gpu_free_memory(std::uint64_t wanted = 0);
// Bytes that are in use on it, by whatever process.
std::uint64_t gpu_used_memory();
// The current GPU, told apart from all others of all hosts; the same in every process.
using GpuId = std::array<char, 16>;
GpuId current_gpu_id();
// Whether kernels on the current GPU can read and write the memory of that one; true also of one
// that this process does not see, of which the driver tells nothing.
bool gpu_reaches(const GpuId& other);
// The error when a kernel of this build runs on a GPU; empty if it runs.
std::string gpu_kernel_fault(int index);
// Gives back the GPU memory that this process keeps without using it. `release` does so for a cache
// that rooms below cannot see, libtorch's; it is set once.
void release_gpu_caches();
void set_gpu_cache_release(void (*release)());
// Waits for all work of the current GPU. Throws what went wrong in it.
void wait_for_gpu();

}  // namespace plait
