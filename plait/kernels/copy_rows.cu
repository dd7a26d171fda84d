// Bytes: each row read once and written once. A thread moves four elements at a time where rows are
// multiples of 16 bytes, with several on their way, else one.
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "plait/base/error.h"
#include "plait/kernels/copy_rows_cuda.h"

namespace plait {
namespace {

constexpr int kThreads = 512;
constexpr int kInFlight = 4;

template <class To, int kVec>
struct Piece;
template <>
struct Piece<float, 1> {
  using From = float;
  using Type = float;
  static __device__ Type scaled(From v, float s) { return v * s; }
};
template <>
struct Piece<float, 4> {
  using From = float4;
  using Type = float4;
  static __device__ Type scaled(From v, float s) {
    return make_float4(v.x * s, v.y * s, v.z * s, v.w * s);
  }
};
template <>
struct Piece<__nv_bfloat16, 1> {
  using From = float;
  using Type = __nv_bfloat16;
  static __device__ Type scaled(From v, float s) { return __float2bfloat16(v * s); }
};
template <>
struct Piece<__nv_bfloat16, 4> {
  using From = float4;
  struct alignas(8) Type {
    __nv_bfloat162 low, high;
  };
  static __device__ Type scaled(From v, float s) {
    return {__floats2bfloat162_rn(v.x * s, v.y * s), __floats2bfloat162_rn(v.z * s, v.w * s)};
  }
};

template <class To, int kVec>
__global__ void __launch_bounds__(kThreads) copy_rows_kernel(const CopyRowsArgs a) {
  using P = Piece<To, kVec>;
  const std::uint64_t pieces = a.width / kVec, all = a.count * pieces;
  const auto* const from = reinterpret_cast<const typename P::From*>(a.from);
  auto* const to = static_cast<typename P::Type*>(a.to);
  const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
  for (std::uint64_t first = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x; first < all;
       first += step * kInFlight) {
    typename P::From value[kInFlight];
    float scale[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const std::uint64_t at = first + k * step;
      if (at >= all) continue;
      const std::uint64_t row = at / pieces, source = a.rows != nullptr ? a.rows[row] : row;
      value[k] = __ldcs(from + source * pieces + at % pieces);
      scale[k] = a.scale != nullptr ? a.scale[source] : 1;
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const std::uint64_t at = first + k * step;
      if (at < all) to[at] = P::scaled(value[k], scale[k]);
    }
  }
}

template <class To>
void launch(const CopyRowsArgs& a, cudaStream_t stream) {
  const bool vectors = a.width % 4 == 0 && reinterpret_cast<std::uintptr_t>(a.from) % 16 == 0 &&
                       reinterpret_cast<std::uintptr_t>(a.to) % (4 * sizeof(To)) == 0;
  const std::uint64_t pieces = a.count * (a.width / (vectors ? 4 : 1));
  const std::uint64_t wanted = (pieces + kThreads * kInFlight - 1) / (kThreads * kInFlight);
  const auto blocks = static_cast<unsigned>(
      std::min<std::uint64_t>(wanted, a.blocks > 0 ? a.blocks : std::uint64_t{1} << 16));
  if (vectors)
    copy_rows_kernel<To, 4><<<blocks, kThreads, 0, stream>>>(a);
  else
    copy_rows_kernel<To, 1><<<blocks, kThreads, 0, stream>>>(a);
}

}  // namespace

void copy_rows(const CopyRowsArgs& args, cudaStream_t stream) {
  require<UsageError>(args.type != DType::f16, "rows are copied as fp32 or bf16");
  if (args.count == 0 || args.width == 0) return;
  args.type == DType::f32 ? launch<float>(args, stream) : launch<__nv_bfloat16>(args, stream);
  check_cuda(cudaGetLastError(), "copying rows");
}

}  // namespace plait
