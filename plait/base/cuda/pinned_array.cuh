// Memory of the host that the GPU copies from and to while the host goes on.
#pragma once

#include "plait/base/cuda/cuda.cuh"

namespace plait {

// Uninitialised memory of a trivial type, which this object owns.
template <class T>
class PinnedArray {
 public:
  PinnedArray() = default;
  ~PinnedArray() { cudaFreeHost(data_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  T* data() { return data_; }
  std::size_t size() const { return size_; }
  // As DeviceArray's.
  void reserve(std::size_t size) {
    if (size <= size_) return;
    cudaFreeHost(std::exchange(data_, nullptr));
    size_ = 0;
    const std::size_t bytes = size * sizeof(T);
    check_pinned(cudaMallocHost(reinterpret_cast<void**>(&data_), bytes), bytes, "host memory");
    size_ = size;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace plait
