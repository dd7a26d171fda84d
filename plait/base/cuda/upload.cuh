// Copies of large arrays of the host to the GPU.
#pragma once

#include <span>

#include "plait/base/cuda/cuda.cuh"

namespace plait {

// Copies bytes of any memory to the GPU at the rate of the link: all threads of the host fill a
// piece of memory that the GPU reads while they fill another one. CUDA's own copy from memory that
// is not pinned takes one thread. Waits for all work of the GPU, as copy_to_gpu(), by which it
// copies few bytes. Throws as check_cuda().
void upload(void* to, const void* from, std::size_t bytes);

// Returns a copy on the GPU. Throws DoesNotFitError.
template <class T>
DeviceArray<T> uploaded(std::span<const T> values) {
  DeviceArray<T> array(values.size());
  upload(array.data(), values.data(), values.size_bytes());
  return array;
}

}  // namespace plait
