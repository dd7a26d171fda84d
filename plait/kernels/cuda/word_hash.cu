// Each byte is read once.
#include <algorithm>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/kernels/word_hash.h"

namespace plait {
namespace {

constexpr unsigned kThreads = 256, kBlocks = 2048;

__global__ void __launch_bounds__(kThreads)
    hash_kernel(const std::uint64_t* words, std::uint64_t count, std::uint64_t last,
                WordHash* result) {
  WordHash here;
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
  const std::uint64_t first = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  for (std::uint64_t i = first; i < count; i += step) here.add(__ldcs(words + i), i);
  if (first == 0 && last != 0) {  // the last bytes are not a whole word
    std::uint64_t word = 0;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(words + count);
    for (std::uint64_t b = 0; b < last; ++b) word |= std::uint64_t{bytes[b]} << 8 * b;
    here.add(word, count);
  }
  for (int lane = 16; lane > 0; lane /= 2) {
    here.low += __shfl_down_sync(~0u, here.low, lane);
    here.high += __shfl_down_sync(~0u, here.high, lane);
  }
  if (threadIdx.x % 32 != 0) return;
  // Sums modulo 2^64 do not depend on their order.
  atomicAdd(reinterpret_cast<unsigned long long*>(&result->low), here.low);
  atomicAdd(reinterpret_cast<unsigned long long*>(&result->high), here.high);
}

}  // namespace

WordHash gpu_hash_words(std::span<const std::byte> bytes, void* stream) {
  require(reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 == 0,
          "memory to hash must begin at a multiple of 8 bytes");
  const auto on = static_cast<cudaStream_t>(stream);
  DeviceArray<WordHash> result(std::vector<WordHash>(1));
  const std::uint64_t count = bytes.size() / 8;
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::uint64_t>((count + kThreads - 1) / kThreads, 1, kBlocks));
  hash_kernel<<<blocks, kThreads, 0, on>>>(reinterpret_cast<const std::uint64_t*>(bytes.data()),
                                           count, bytes.size() % 8, result.data());
  check_cuda(cudaGetLastError(), "a hash");
  check_cuda(cudaStreamSynchronize(on), "a hash");
  return result.to_host()[0];
}

}  // namespace plait
