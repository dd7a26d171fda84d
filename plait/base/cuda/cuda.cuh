// CUDA from C++: failures as exceptions; device memory and events that free themselves.
//
// Files that need CUDA end in .cu, and their headers in .cuh; they are built if nvcc is found.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace plait {

// Throws Error "WHAT: what CUDA says", or DoesNotFitError with the figures if memory is short.
void check_cuda(cudaError_t status, std::string_view what);

// As check_cuda(), after `bytes` of the host's memory were to be pinned for GPUs: throws
// DoesNotFitError with figures of the host if it has too little.
void check_pinned(cudaError_t status, std::size_t bytes, std::string_view what);

// Returns memory of the current GPU, for cudaFree(). If there is too little, memory that caches
// keep unused is given back first (gpu.h); throws DoesNotFitError if that is not enough.
void* allocate_on_gpu(std::size_t bytes);

// Memory from a pool that this process keeps for the current GPU: it is taken in the order of one
// stream and given back in the order of another, and the GPU is not waited for. Both streams must
// live until then, and the memory must not be used by any later work.
struct FromPool {
  cudaStream_t stream = nullptr, last = nullptr;

  // For memory that is used on `stream` alone.
  FromPool scratch() const { return {stream, stream}; }
};
// Returns such memory, for cudaFreeAsync(). Throws as allocate_on_gpu(). What the pool keeps unused
// is freed by trim_gpu_pool().
void* allocate_from_pool(std::size_t bytes, cudaStream_t stream);
void trim_gpu_pool();

// Tells whether work given to the stream is recorded for replay (CUDA graphs), and does not run
// now.
bool is_recorded(cudaStream_t stream);
// Makes the recording that the stream's work goes to invalid: to end it is an error then.
void spoil_recording(cudaStream_t stream);

// Copy between the host and the GPU. Both wait for all work of the GPU, whatever its stream, and
// the copy has ended for every stream when they return.
void copy_to_gpu(void* to, const void* from, std::size_t bytes);
void copy_to_host(void* to, const void* from, std::size_t bytes);

// Uninitialised memory of a trivial type on the current GPU, which this object owns.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  // Throw DoesNotFitError. The second copies the values, and waits for the GPU.
  explicit DeviceArray(std::size_t size) : size_(size) {
    if (size > 0) data_ = static_cast<T*>(allocate_on_gpu(size * sizeof(T)));
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) {
    if (size_ > 0) copy_to_gpu(data_, values.data(), size_ * sizeof(T));
  }
  // Takes memory of the pool, or other memory if `pool` is null.
  DeviceArray(std::size_t size, const std::optional<FromPool>& pool) : size_(size), pool_(pool) {
    if (size == 0) return;
    data_ = static_cast<T*>(pool ? allocate_from_pool(size * sizeof(T), pool->stream)
                                 : allocate_on_gpu(size * sizeof(T)));
  }
  ~DeviceArray() {
    if (data_ == nullptr) return;
    if (pool_)
      cudaFreeAsync(data_, pool_->last);
    else
      cudaFree(data_);
  }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        pool_(other.pool_) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(pool_, other.pool_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }

  // Makes room for at least `size` values. If it grows, the old values are lost: their memory is
  // freed first, which waits for the GPU, and nothing is held if the room cannot be had.
  void reserve(std::size_t size) {
    if (size <= size_) return;
    *this = DeviceArray();
    *this = DeviceArray(size);
  }

  // Returns a copy. Waits for all work that the GPU was given before, on any stream.
  std::vector<T> to_host() const {
    std::vector<T> values(size_);
    if (size_ > 0) copy_to_host(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::optional<FromPool> pool_;  // from which data_ is
};

// A point in a stream's work. Members throw as check_cuda().
class DeviceEvent {
 public:
  DeviceEvent() { check_cuda(cudaEventCreate(&event_), "an event"); }
  ~DeviceEvent() { cudaEventDestroy(event_); }
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  cudaEvent_t get() const { return event_; }
  // Places it behind all work that the stream has been given so far.
  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "an event"); }
  // Waits for this event, and returns the milliseconds from `start` to it.
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
