// A stream of CUDA's that belongs to one object.
#pragma once

#include "plait/base/cuda/cuda.cuh"

namespace plait {

// Returns the priority of a stream whose small kernels go before the blocks of others.
inline int first_priority() {
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "a stream");
  return greatest;
}

// A stream on the current GPU that does not wait for the default one. Its destructor waits for its
// work. `priority`: as CUDA's, 0 for none. The constructor throws as check_cuda().
class GpuStream {
 public:
  explicit GpuStream(int priority = 0) {
    check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority), "a stream");
  }
  ~GpuStream() {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace plait
