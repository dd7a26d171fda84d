// Each row is read once and written once. A thread moves four elements at a time, with several such
// pieces on their way. It writes whole vectors, padding included, so that no sector of memory is
// written in part. If rows of `from` stand at any float, it reads floats one by one, and the lines
// of a warp's first load serve the other three.
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "plait/base/error.h"
#include "plait/base/row_stride.h"
#include "plait/kernels/cuda/copy_rows.cuh"

namespace plait {
namespace {

constexpr int kThreads = 512;
constexpr int kInFlight = 4;

// The type in which a piece is written. Reading is always of floats; their bits stay if they are
// written as floats.
template <class To, int kVec>
struct Piece;
template <>
struct Piece<float, 1> {
  using Type = float;
  static __device__ Type of(const float (&v)[1]) { return v[0]; }
};
template <>
struct Piece<float, 4> {
  using Type = float4;
  static __device__ Type of(const float (&v)[4]) { return make_float4(v[0], v[1], v[2], v[3]); }
};
template <>
struct Piece<__nv_bfloat16, 1> {
  using Type = __nv_bfloat16;
  static __device__ Type of(const float (&v)[1]) { return __float2bfloat16(v[0]); }
};
template <>
struct Piece<__nv_bfloat16, 4> {
  struct alignas(8) Type {
    __nv_bfloat162 low, high;
  };
  static __device__ Type of(const float (&v)[4]) {
    return {__floats2bfloat162_rn(v[0], v[1]), __floats2bfloat162_rn(v[2], v[3])};
  }
};

// The kVec floats from `column` on of a row of `width`; 0 behind its end. kWhole: they stand at a
// multiple of 16 bytes, and the row is padded to one.
template <int kVec, bool kWhole>
__device__ void load(float (&value)[kVec], const float* row, std::uint64_t column,
                     std::uint64_t width) {
  if constexpr (kWhole) {
    float4 four{};
    if (column < width) four = __ldcs(reinterpret_cast<const float4*>(row + column));
    value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
  } else {
#pragma unroll
    for (int i = 0; i < kVec; ++i) value[i] = column + i < width ? __ldg(row + column + i) : 0.0f;
  }
}

// `pieces`: of a row of `to`, which has no gaps but its padding.
template <class To, int kVec, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    copy_rows_kernel(const CopyRowsArgs a, std::uint64_t pieces) {
  using P = Piece<To, kVec>;
  const std::uint64_t all = a.count * pieces;
  auto* const to = static_cast<typename P::Type*>(a.to);
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t first = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x; first < all;
       first += step * kInFlight) {
    float value[kInFlight][kVec];
    float scale[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const std::uint64_t at = first + k * step;
      if (at >= all) continue;
      const std::uint64_t row = at / pieces, source = a.rows != nullptr ? a.rows[row] : row;
      load<kVec, kWhole>(value[k], a.from + source * a.from_stride, at % pieces * kVec, a.width);
      scale[k] = a.scale != nullptr ? a.scale[source] : 1;
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const std::uint64_t at = first + k * step;
      if (at >= all) continue;
      if (a.scale != nullptr)  // a product with 1 would change NaN, which rows of other types hold
#pragma unroll
        for (int i = 0; i < kVec; ++i) value[k][i] *= scale[k];
      to[at] = P::of(value[k]);
    }
  }
}

template <class To>
void launch(const CopyRowsArgs& a, cudaStream_t stream) {
  const auto stands_on = [](const void* at, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(at) % bytes == 0;
  };
  const std::uint64_t stride = row_stride(a.width, a.type);
  const bool writes_whole = stride % 4 == 0 && stands_on(a.to, 4 * sizeof(To));
  const bool reads_whole = stands_on(a.from, sizeof(float4)) && a.from_stride % 4 == 0 &&
                           row_stride(a.width) % 4 == 0 && a.from_stride >= row_stride(a.width);
  const std::uint64_t pieces = stride / (writes_whole ? 4 : 1);
  const std::uint64_t a_block = std::uint64_t{kThreads} * kInFlight;
  const auto blocks = static_cast<unsigned>(
      std::min<std::uint64_t>((a.count * pieces + a_block - 1) / a_block,
                              a.blocks > 0 ? a.blocks : std::uint64_t{1} << 16));
  const auto kernel = !writes_whole ? copy_rows_kernel<To, 1, false>
                      : reads_whole ? copy_rows_kernel<To, 4, true>
                                    : copy_rows_kernel<To, 4, false>;
  kernel<<<blocks, kThreads, 0, stream>>>(a, pieces);
}

}  // namespace

void copy_rows(const CopyRowsArgs& args, cudaStream_t stream) {
  require<UsageError>(args.type != DType::f16, "rows are copied as fp32 or bf16");
  if (args.count == 0 || args.width == 0) return;
  args.type == DType::f32 ? launch<float>(args, stream) : launch<__nv_bfloat16>(args, stream);
  check_cuda(cudaGetLastError(), "copying rows");
}

}  // namespace plait
