// The GPUs of this host, without CUDA's headers. In a build without CUDA gpu_count() is 0 and
// use_gpu() throws UsageError.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace plait {

// One GPU of this host.
struct Gpu {
  std::string name;
  int major = 0, minor = 0;            // compute capability
  std::uint64_t memory = 0, free = 0;  // bytes
  // For each GPU of this host: true if it can be reached by loads and stores.
  std::vector<bool> reaches;
  int links = 0;                 // NVLinks that are up
  std::string link = "unknown";  // "NVLink, 18 x 26.6 GB/s", "PCIe 5 x16", or "unknown"
};

// Tells whether this build has the GPU engine.
bool built_with_cuda();
// Returns the number of GPUs that this process may use; 0 also if there is no driver.
int gpu_count();
// Returns all GPUs. Makes a context on each, which is slow.
std::vector<Gpu> list_gpus();
// Sends this thread's work to the GPU of this number from here on. Throws UsageError if there is
// none.
void use_gpu(int index);
// Returns the GPU to which this thread's work goes.
int current_gpu();
// Returns the bytes that are free on the current GPU. If fewer than `wanted` are, caches are
// emptied first.
std::uint64_t gpu_free_memory(std::uint64_t wanted = 0);
// Returns the bytes that are in use on the current GPU, by any process.
std::uint64_t gpu_used_memory();
// The identity of a GPU among all GPUs of all hosts, the same in every process.
using GpuId = std::array<char, 16>;
// Returns the identity of the current GPU.
GpuId current_gpu_id();
// Returns the number, in this process, of the GPU of this identity; -1 if this process does not see
// it.
int gpu_of(const GpuId& id);
// Returns the product name of the current GPU.
std::string current_gpu_name();
// Tells whether kernels on the current GPU can read and write the memory of the other one; true
// also for a GPU that this process does not see, since the driver tells nothing about it.
bool gpu_reaches(const GpuId& other);
// Returns the error when a kernel of this build runs on a GPU; empty if it runs.
std::string gpu_kernel_fault(int index);
// Gives back the GPU memory that this process keeps without using it. set_gpu_cache_release() names
// a function that does so for a cache that rooms below cannot see, libtorch's; it is called once.
void release_gpu_caches();
void set_gpu_cache_release(void (*release)());
// Waits for all work of the current GPU. Throws the Error that occurred in it.
void wait_for_gpu();

}  // namespace plait
