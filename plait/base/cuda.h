// CUDA from C++: failures as exceptions; device memory and events that free themselves.
//
// Files that need CUDA end in .cu, and their headers in _cuda.h; they are built where nvcc is
// found.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace plait {

// Throws Error "WHAT: what CUDA says", or DoesNotFitError with the figures where it is memory that
// lacks.
void check_cuda(cudaError_t status, std::string_view what);

// Memory of the current GPU, for cudaFree(). Throws DoesNotFitError, after what caches keep without
// use has been given back (gpu.h).
void* allocate_on_gpu(std::size_t bytes);

// Whether what the stream is given is recorded for replay (CUDA graphs), and does not run now.
bool is_recorded(cudaStream_t stream);

// Copies between the host and the GPU that follow all work of the GPU, whatever its stream, and
// have ended for every stream when they return.
void copy_to_gpu(void* to, const void* from, std::size_t bytes);
void copy_to_host(void* to, const void* from, std::size_t bytes);

// Uninitialised memory of a trivial type on the current GPU.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t size) : size_(size) {
    if (size > 0) data_ = static_cast<T*>(allocate_on_gpu(size * sizeof(T)));
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) {
    if (size_ > 0) copy_to_gpu(data_, values.data(), size_ * sizeof(T));
  }
  ~DeviceArray() {
    if (data_ != nullptr) cudaFree(data_);
  }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }

  // Room for at least `size` values; those that were there are lost where it grows. What was held
  // is freed first, which waits for the GPU, and nothing is held if the room cannot be had.
  void reserve(std::size_t size) {
    if (size <= size_) return;
    *this = DeviceArray();
    *this = DeviceArray(size);
  }

  // Waits for all that the GPU was given to do before, on any stream.
  std::vector<T> to_host() const {
    std::vector<T> values(size_);
    if (size_ > 0) copy_to_host(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// A point in a stream's work.
class DeviceEvent {
 public:
  DeviceEvent() { check_cuda(cudaEventCreate(&event_), "an event"); }
  ~DeviceEvent() { cudaEventDestroy(event_); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "an event"); }
  // Milliseconds from `start` to this one, which it waits for.
  float since(const DeviceEvent& start) const {
    float milliseconds = 0;
    check_cuda(cudaEventSynchronize(event_), "work on the GPU");
    check_cuda(cudaEventElapsedTime(&milliseconds, start.event_, event_), "an event's time");
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace plait
