#include <limits>
#include <map>
#include <mutex>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"

namespace plait {

void check_cuda(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error that is reported here
  if (status == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    const cudaError_t now = cudaMemGetInfo(&free, &total);
    if (now == cudaErrorMemoryAllocation) {  // there is no room for a context
      cudaGetLastError();
      throw DoesNotFitError(fmt::format(
          "{}: too little of its memory is free for a process to begin there; end other "
          "programs on it, which nvidia-smi names, or use another GPU",
          what));
    }
    check_cuda(now, what);  // the GPU failed meanwhile
    throw DoesNotFitError(fmt::format("{}: not enough is free: {} of {}; use more GPUs", what,
                                      format_bytes(free), format_bytes(total)));
  }
  throw Error(fmt::format("{}: {}", what, cudaGetErrorString(status)));
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
