#include <limits>
#include <map>
#include <mutex>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"

namespace plait {

namespace {

struct GpuMemory {
  std::size_t free = 0, total = 0;  // bytes
};

// Returns the current GPU's memory. Throws DoesNotFitError if this process cannot begin there, and
// Error if the GPU fails.
GpuMemory memory_of_gpu(std::string_view what) {
  GpuMemory memory;
  const cudaError_t status = cudaMemGetInfo(&memory.free, &memory.total);
  if (status != cudaErrorMemoryAllocation) {
    check_cuda(status, what);
    return memory;
  }
  cudaGetLastError();  // there is no room for a context
  throw DoesNotFitError(
      fmt::format("{}: too little of its memory is free for a process to begin there; end other "
                  "programs on it, which nvidia-smi names, or use another GPU",
                  what));
}

}  // namespace

void check_cuda(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error that is reported here
  if (status != cudaErrorMemoryAllocation)
    throw Error(fmt::format("{}: {}", what, cudaGetErrorString(status)));
  const GpuMemory memory = memory_of_gpu(what);
  throw DoesNotFitError(fmt::format("{}: not enough is free: {} of {}; use more GPUs", what,
                                    format_bytes(memory.free), format_bytes(memory.total)));
}

void check_pinned(cudaError_t status, std::size_t bytes, std::string_view what) {
  if (status != cudaErrorMemoryAllocation) return check_cuda(status, what);
  cudaGetLastError();  // clears the error that is reported here
  memory_of_gpu(what);
  throw DoesNotFitError(fmt::format(
      "{}: {} of the host's memory cannot be pinned for GPUs, {} is free; end other programs, or "
      "raise the limits of this container or user (ulimit -l)",
      what, format_bytes(bytes), format_bytes(available_memory())));
}

void* allocate_on_gpu(std::size_t bytes) {
  void* memory = nullptr;
  cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    release_gpu_caches();
    status = cudaMalloc(&memory, bytes);
  }
  check_cuda(status, "GPU memory");
  return memory;
}

namespace {

// Returns the pool of the current GPU, or null if there is none and none is to be made. It keeps
// what is given back, until it is trimmed.
cudaMemPool_t gpu_pool(bool make) {
  static std::mutex mutex;
  static std::map<int, cudaMemPool_t> pools;
  int device = 0;
  check_cuda(cudaGetDevice(&device), "the GPU");
  const std::lock_guard lock(mutex);
  cudaMemPool_t& pool = pools[device];
  if (pool != nullptr || !make) return pool;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, device};
  check_cuda(cudaMemPoolCreate(&pool, &properties), "a pool of GPU memory");
  std::uint64_t kept = std::numeric_limits<std::uint64_t>::max();
  check_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept),
             "a pool of GPU memory");
  return pool;
}

}  // namespace

void* allocate_from_pool(std::size_t bytes, cudaStream_t stream) {
  const cudaMemPool_t pool = gpu_pool(true);
  void* memory = nullptr;
  cudaError_t status = cudaMallocFromPoolAsync(&memory, bytes, pool, stream);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    release_gpu_caches();
    status = cudaMallocFromPoolAsync(&memory, bytes, pool, stream);
  }
  check_cuda(status, "GPU memory");
  return memory;
}

void trim_gpu_pool() {
  const cudaMemPool_t pool = gpu_pool(false);
  if (pool != nullptr) check_cuda(cudaMemPoolTrimTo(pool, 0), "a pool of GPU memory");
}

bool is_recorded(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  check_cuda(cudaStreamIsCapturing(stream, &status), "a stream");
  return status != cudaStreamCaptureStatusNone;
}

void spoil_recording(cudaStream_t stream) {
  cudaStreamSynchronize(stream);  // is refused, and spoils it
  cudaGetLastError();
}

// The default stream does not follow others and others do not follow it, and cudaMemcpy may return
// when the host's memory has been read: so the GPU is waited for before and after.
void copy_to_gpu(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaDeviceSynchronize(), "work on the GPU");
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copy to the GPU");
  check_cuda(cudaDeviceSynchronize(), "copy to the GPU");
}

void copy_to_host(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaDeviceSynchronize(), "work on the GPU");
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copy from the GPU");
}

}  // namespace plait
