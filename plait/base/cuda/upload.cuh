// Copies of large arrays between the host and the GPU.
#pragma once

#include <span>

#include "plait/base/cuda/cuda.cuh"

namespace plait {

// Copy bytes of any memory to the GPU, or from it, at the rate of the link: through pinned memory,
// by all threads of the host. CUDA's own copy of memory that is not pinned takes one thread. Both
// wait for all work of the GPU, as copy_to_gpu() and copy_to_host(), which they call for few bytes.
// They throw as check_cuda().
void upload(void* to, const void* from, std::size_t bytes);
void download(void* to, const void* from, std::size_t bytes);

// Returns a copy on the GPU. Throws DoesNotFitError.
template <class T>
DeviceArray<T> uploaded(std::span<const T> values) {
  DeviceArray<T> array(values.size());
  upload(array.data(), values.data(), values.size_bytes());
  return array;
}

}  // namespace plait
