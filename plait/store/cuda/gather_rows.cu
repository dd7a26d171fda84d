// As many lanes work on a row as it has pieces of the widest word on which all rows stand, up to a
// warp. A lane reads a piece of each of kInFlight rows before it writes any, so that loads over a
// link, which take 1.1 us, are many: 132 multiprocessors x 2,048 threads x 4 loads of 16 bytes are
// 17 MB on their way, and a link of 475 GB/s holds 0.5 MB.
//
// A row's bytes are read once and written once: n bytes take 2 n / 4.3 TB/s in one GPU's memory if
// rows are long; rows of 32 bytes come at 1.0 TB/s. Neighbouring lanes take neighbouring rows, so
// that results are written in whole lines. Rows are read past the L1 cache, for none is read twice
// by one multiprocessor, but through the L2 cache, because some ids repeat.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/store/cuda/gather_rows.h"
#include "plait/store/cuda/rank_table.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr int kInFlight = 4;
constexpr unsigned kMostBlocks = 4096;

// Moves pieces as they are.
template <class Word>
struct Copy {
  using Piece = Word;
  static constexpr std::uint64_t kInBytes = sizeof(Word), kOutBytes = sizeof(Word);

  static __device__ void write(std::byte* to, Word word) { *reinterpret_cast<Word*>(to) = word; }
};

__device__ float as_float(unsigned bits, __nv_bfloat16) { return __uint_as_float(bits << 16); }
__device__ float as_float(unsigned bits, __half) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// Converts elements of 16 bits one by one.
template <class T>
struct ConvertOne {
  using Piece = unsigned short;
  static constexpr std::uint64_t kInBytes = 2, kOutBytes = 4;

  static __device__ void write(std::byte* to, Piece bits) {
    *reinterpret_cast<float*>(to) = as_float(bits, T{});
  }
};

// Converts eight of them, from and to whole vectors.
template <class T>
struct ConvertEight {
  using Piece = uint4;
  static constexpr std::uint64_t kInBytes = 16, kOutBytes = 32;

  static __device__ float4 four(unsigned low, unsigned high) {
    return {as_float(low & 0xffffu, T{}), as_float(low >> 16, T{}), as_float(high & 0xffffu, T{}),
            as_float(high >> 16, T{})};
  }
  static __device__ void write(std::byte* to, uint4 bits) {
    auto* const out = reinterpret_cast<float4*>(to);
    out[0] = four(bits.x, bits.y);
    out[1] = four(bits.z, bits.w);
  }
};

template <class Mover, int kLanes>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(const __grid_constant__ GatherRows a, std::uint64_t pieces) {
  __shared__ RankTable ranks;
  ranks.fill(a.from);
  const std::uint64_t step = std::uint64_t{gridDim.x} * (kThreads / kLanes);
  const unsigned lane = threadIdx.x % kLanes;
  std::uint64_t first = blockIdx.x * std::uint64_t{kThreads / kLanes} + threadIdx.x / kLanes;
  for (; first < a.count; first += step * kInFlight) {
    const std::byte* row[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (first + k * step < a.count) row[k] = ranks.row(a.from, a.ids[first + k * step]);
    for (std::uint64_t c = lane; c < pieces; c += kLanes) {
      typename Mover::Piece piece[kInFlight];
#pragma unroll
      for (int k = 0; k < kInFlight; ++k)
        if (first + k * step < a.count)
          piece[k] =
              __ldcg(reinterpret_cast<const typename Mover::Piece*>(row[k] + c * Mover::kInBytes));
#pragma unroll
      for (int k = 0; k < kInFlight; ++k)
        if (first + k * step < a.count)
          Mover::write(a.out + (first + k * step) * a.out_stride + c * Mover::kOutBytes, piece[k]);
    }
  }
}

unsigned blocks_of(std::uint64_t rows, int lanes, int in_flight) {
  const std::uint64_t of_block = static_cast<std::uint64_t>(kThreads / lanes * in_flight);
  return static_cast<unsigned>(
      std::clamp<std::uint64_t>((rows + of_block - 1) / of_block, 1, kMostBlocks));
}

template <class Mover>
void launch(const GatherRows& a, cudaStream_t stream) {
  const std::uint64_t pieces = a.width * element_bytes(a.form) / Mover::kInBytes;
  for_lanes<1>(pieces, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    gather_kernel<Mover, kLanes>
        <<<blocks_of(a.count, kLanes, kInFlight), kThreads, 0, stream>>>(a, pieces);
  });
  check_cuda(cudaGetLastError(), "gathering rows");
}

// Returns the greatest power of two, at most 16, that divides all addresses and sizes of the rows
// that are read.
std::uint64_t alignment_of(const StoredRows& rows) {
  std::uint64_t all = rows.stride | 16;
  for (int r = 0; r < rows.ranks; ++r) all |= reinterpret_cast<std::uintptr_t>(rows.base[r]);
  return all & (0 - all);
}

template <class T>
void launch_converted(const GatherRows& a, std::uint64_t in, std::uint64_t out,
                      cudaStream_t stream) {
  if (in == 16 && out == 16 && a.width % 8 == 0)
    launch<ConvertEight<T>>(a, stream);
  else
    launch<ConvertOne<T>>(a, stream);
}

}  // namespace

void gpu_gather_rows(const GatherRows& a, void* at) {
  if (a.count == 0 || a.width == 0) return;
  auto* const stream = static_cast<cudaStream_t>(at);
  const std::uint64_t in = alignment_of(a.from);
  const std::uint64_t out_bits = reinterpret_cast<std::uintptr_t>(a.out) | a.out_stride | 16;
  const std::uint64_t out = out_bits & (0 - out_bits);
  if (a.form == RowForm::bf16) return launch_converted<__nv_bfloat16>(a, in, out, stream);
  if (a.form == RowForm::f16) return launch_converted<__half>(a, in, out, stream);
  const std::uint64_t bits = in | out | a.width * element_bytes(a.form);
  switch (bits & (0 - bits)) {
    case 1:
      return launch<Copy<unsigned char>>(a, stream);
    case 2:
      return launch<Copy<unsigned short>>(a, stream);
    case 4:
      return launch<Copy<unsigned>>(a, stream);
    case 8:
      return launch<Copy<uint2>>(a, stream);
    default:
      return launch<Copy<uint4>>(a, stream);
  }
}

}  // namespace plait
