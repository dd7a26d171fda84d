// A stream of its own.
#pragma once

#include "plait/base/cuda/cuda.cuh"

namespace plait {

// A stream on the current GPU that does not wait for the default one. Its destructor waits for its
// work. The constructor throws as check_cuda().
class OwnStream {
 public:
  OwnStream() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  }
  ~OwnStream() {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace plait
