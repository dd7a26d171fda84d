// Stores rows on the GPU. Lanes of a warp share a row. They read it once for its greatest
// magnitude, if it has a scale, and again for its codes, then from the caches: n bytes of fp32 are
// read and n / 4 or n / 2 written. Rows come over PCIe, which takes 60 times as long.
#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/table/convert.h"
#include "plait/table/cuda/store_rows.h"

namespace plait {
namespace {

constexpr int kThreads = 256;

template <class T>
__device__ void put(std::byte* at, T value) {
  *reinterpret_cast<T*>(at) = value;
}

template <class Storage, int kLanes>
__global__ void __launch_bounds__(kThreads) encode_rows(const __grid_constant__ StoreRows a) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * (kThreads / kLanes);
  const unsigned lane = threadIdx.x % kLanes;
  // All lanes of a warp go as many rounds, because they exchange values.
  const std::uint64_t rounds = (a.count + step - 1) / step;
  std::uint64_t i = blockIdx.x * std::uint64_t{kThreads / kLanes} + threadIdx.x / kLanes;
  for (std::uint64_t round = 0; round < rounds; ++round, i += step) {
    const std::uint64_t width = i < a.count ? a.width : 0;
    const auto* const row = reinterpret_cast<const float*>(a.rows + i * a.rows_stride);
    std::byte* const out = a.out + i * a.out_stride;
    float scale = 0;
    if constexpr (kHasScale<Storage>) {
      std::uint32_t greatest = 0;
      for (std::uint64_t k = lane; k < width; k += kLanes)
        greatest = max(greatest, __float_as_uint(row[k]) & ~kSignBit);
      for (int k = kLanes / 2; k > 0; k /= 2)
        greatest = max(greatest, __shfl_xor_sync(kAll, greatest, k));
      scale = scale_of<Storage>(greatest);
      if (lane == 0 && width > 0) put(out + scale_offset(width), scale);
    }
    for (std::uint64_t k = lane; k < width; k += kLanes) {
      const auto code = encoded<Storage>(row[k], scale);
      put(out + k * sizeof(code), code);
    }
  }
}

template <class Storage>
void launch(const StoreRows& a, cudaStream_t stream) {
  constexpr std::uint64_t kMostBlocks = 4096;
  for_lanes<1>(a.width, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    constexpr std::uint64_t kOfBlock = kThreads / kLanes;
    const auto blocks =
        static_cast<unsigned>(std::min((a.count + kOfBlock - 1) / kOfBlock, kMostBlocks));
    encode_rows<Storage, kLanes><<<blocks, kThreads, 0, stream>>>(a);
  });
  check_cuda(cudaGetLastError(), "storing rows");
}

}  // namespace

void gpu_store_rows(const StoreRows& a, void* at) {
  if (a.count == 0 || a.width == 0) return;
  auto* const stream = static_cast<cudaStream_t>(at);
  if (is_copied(a.type)) {
    check_cuda(cudaMemcpy2DAsync(a.out, a.out_stride, a.rows, a.rows_stride,
                                 a.width * size_of(a.type), a.count, cudaMemcpyDefault, stream),
               "storing rows");
    return;
  }
  with_storage(a.type, [&]<class S>(S) {
    if constexpr (!std::is_same_v<S, StoredNumber<float>>) launch<S>(a, stream);
  });
}

}  // namespace plait
