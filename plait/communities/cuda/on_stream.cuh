// Memory and numbers of the stream on which communities are found.
//
// All throw as check_cuda() and allocate_from_pool().
#pragma once

#include <cstdint>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/cuda.cuh"

namespace plait {

// The work that CUDA's errors name.
inline constexpr const char* kFindingCommunities = "finding communities";

using Count = unsigned long long;  // a 64-bit number as CUDA's atomic additions take it
inline Count* counts_in(DeviceArray<std::uint64_t>& numbers) {
  return reinterpret_cast<Count*>(numbers.data());
}

inline void check_launch() { check_cuda(cudaGetLastError(), kFindingCommunities); }

// Return uninitialised memory, and memory of zeros.
template <class T>
DeviceArray<T> array_of(std::uint64_t size, cudaStream_t stream) {
  return DeviceArray<T>(size, FromPool{stream, stream});
}
template <class T>
void clear(DeviceArray<T>& array, cudaStream_t stream) {
  if (array.size() == 0) return;
  check_cuda(cudaMemsetAsync(array.data(), 0, array.size() * sizeof(T), stream),
             kFindingCommunities);
}
template <class T>
DeviceArray<T> zeros_of(std::uint64_t size, cudaStream_t stream) {
  DeviceArray<T> zeros = array_of<T>(size, stream);
  clear(zeros, stream);
  return zeros;
}

// Copy values to the host. Both wait for the stream.
template <class T>
void read_back(const T* from, T* to, std::uint64_t count, cudaStream_t stream) {
  check_cuda(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream),
             kFindingCommunities);
  check_cuda(cudaStreamSynchronize(stream), kFindingCommunities);
}
template <class T>
T read_back(const T* value, cudaStream_t stream) {
  T here{};
  read_back(value, &here, 1, stream);
  return here;
}

// As with_scratch(), with memory of the stream.
template <class Act>
void with_stream_scratch(cudaStream_t stream, Act act) {
  with_scratch(kFindingCommunities, FromPool{stream, stream}, act);
}

}  // namespace plait
