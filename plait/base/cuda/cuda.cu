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
    cudaMemGetInfo(&free, &total);
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
