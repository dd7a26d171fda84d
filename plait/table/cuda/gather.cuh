// The kernel of gathers, for all types of rows and for lists of rows (distinct_rows.cu).
//
// As many lanes work on a row as it has pieces of the widest word on which all rows stand, up to a
// warp. A lane reads a piece of each of kInFlight rows before it writes any, so that loads over a
// link, which take 1.1 us, are many: 132 multiprocessors x 1,024 threads x 4 loads of 16 bytes are
// 9 MB on their way (2 MB with the words of 4 bytes that become four floats), and a link of
// 475 GB/s holds 0.5 MB.
//
// A row's bytes are read once and written once: n bytes take 2 n / 4.3 TB/s in one GPU's memory if
// rows are long; rows of 32 bytes come at 1.0 TB/s. Rows of int8 and fp8 are read at a quarter of
// the bytes that are written, so over a link they take a quarter of the time of fp32. Neighbouring
// lanes take neighbouring rows, so that results are written in whole lines. Rows are read past the
// L1 cache, for none is read twice by one multiprocessor, but through the L2 cache, because some
// ids repeat.
#pragma once

#include <algorithm>
#include <type_traits>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/table/convert.h"
#include "plait/table/cuda/gather_rows.h"
#include "plait/table/cuda/rank_table.cuh"
#include "plait/table/gather_rows.h"

namespace plait {

inline constexpr int kGatherThreads = 256;

// Moves pieces as they are.
template <class Word>
struct Copy {
  using Piece = Word;
  static constexpr std::uint64_t kInBytes = sizeof(Word), kOutBytes = sizeof(Word);
  static constexpr bool kScaled = false;

  static __device__ Word value(Word word, float) { return word; }
};

// Converts one element, or four from and to whole words.
template <class Storage, int kElements>
struct Convert {
  using Code = typename Storage::Code;
  static constexpr std::uint64_t kInBytes = kElements * sizeof(Code);
  static constexpr std::uint64_t kOutBytes = kElements * sizeof(float);
  static constexpr bool kBytes = sizeof(Code) == 1, kScaled = kHasScale<Storage>;
  using Element = std::conditional_t<kBytes, unsigned char, unsigned short>;
  using Piece =
      std::conditional_t<kElements == 1, Element, std::conditional_t<kBytes, unsigned, uint2>>;

  static __device__ float element(unsigned bits, float scale) {
    return decoded<Storage>(__builtin_bit_cast(Code, static_cast<Element>(bits)), scale);
  }
  static __device__ auto value(Piece piece, float scale) {
    if constexpr (kElements == 1)
      return element(piece, scale);
    else if constexpr (kBytes)
      return float4{element(piece & 0xffu, scale), element(piece >> 8 & 0xffu, scale),
                    element(piece >> 16 & 0xffu, scale), element(piece >> 24, scale)};
    else
      return float4{element(piece.x & 0xffffu, scale), element(piece.x >> 16, scale),
                    element(piece.y & 0xffffu, scale), element(piece.y >> 16, scale)};
  }
};
// Elements of fp32 stay as they are.
template <int kElements>
struct Convert<StoredNumber<float>, kElements>
    : Copy<std::conditional_t<kElements == 4, float4, float>> {};

// Pieces are written as they are.
struct WholePieces {
  template <class Value>
  static __device__ Value written(Value value, std::uint64_t, std::uint64_t) {
    return value;
  }
};

// Which rows a gather takes, and to which places of the results: all.
struct EveryRow : WholePieces {
  static __device__ std::uint64_t count(const GatherRows& a) { return a.count; }
  static __device__ std::uint64_t place(std::uint64_t i) { return i; }
  static __device__ std::uint64_t id(const GatherRows& a, std::uint64_t, std::uint64_t place) {
    return a.ids[place];
  }
};

// All rows, times the mask of dropout. A piece is one float or four, whose numbers are one block.
struct DroppedRows : EveryRow {
  GatherDropout drop;

  explicit DroppedRows(const GatherDropout& d) : drop(d) {}
  __device__ Philox::Block numbers(std::uint64_t place, std::uint64_t column) const {
    return drop.dropout.numbers(drop.numbers[place], drop.epoch, drop.layer,
                                static_cast<std::uint32_t>(column));
  }
  __device__ float4 written(float4 value, std::uint64_t place, std::uint64_t piece) const {
    const Philox::Block four = numbers(place, 4 * piece);
    return {value.x * drop.dropout.factor(four[0]), value.y * drop.dropout.factor(four[1]),
            value.z * drop.dropout.factor(four[2]), value.w * drop.dropout.factor(four[3])};
  }
  __device__ float written(float value, std::uint64_t place, std::uint64_t piece) const {
    return value * drop.dropout.factor(numbers(place, piece)[piece % 4]);
  }
};

// Adds a block's numbers of rows to those of the caller. Called by all threads.
inline __device__ void add_counts(GatherCounts* counts, unsigned hot, unsigned crossed) {
  __shared__ unsigned of_block[2];
  if (threadIdx.x < 2) of_block[threadIdx.x] = 0;
  __syncthreads();
  const unsigned all[] = {__reduce_add_sync(kAll, hot), __reduce_add_sync(kAll, crossed)};
  if (threadIdx.x % kWarp < 2) {
    const unsigned which = threadIdx.x % kWarp;
    atomicAdd(of_block + which, which == 0 ? all[0] : all[1]);
  }
  __syncthreads();
  if (threadIdx.x < 2 && of_block[threadIdx.x] > 0)
    atomicAdd(
        reinterpret_cast<unsigned long long*>(threadIdx.x == 0 ? &counts->hot : &counts->crossed),
        static_cast<unsigned long long>(of_block[threadIdx.x]));
}

template <class Mover, class Rows, int kLanes>
__global__ void __launch_bounds__(kGatherThreads)
    gather_kernel(const __grid_constant__ GatherRows a, std::uint64_t pieces, const Rows rows) {
  constexpr int kInFlight = 4;
  __shared__ RankTable ranks;
  ranks.fill(a.from);
  const std::uint64_t count = rows.count(a);
  const std::uint64_t step = std::uint64_t{gridDim.x} * (kGatherThreads / kLanes);
  const unsigned lane = threadIdx.x % kLanes;
  unsigned hot = 0, crossed = 0;
  std::uint64_t first = blockIdx.x * std::uint64_t{kGatherThreads / kLanes} + threadIdx.x / kLanes;
  for (; first < count; first += step * kInFlight) {
    const std::byte* row[kInFlight];
    std::uint64_t place[kInFlight];
    float scale[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (const std::uint64_t i = first + k * step; i < count) {
        place[k] = rows.place(i);
        const RowPlace at = place_of(a.from, ranks.starts, rows.id(a, i, place[k]));
        row[k] = ranks.row(a.from, at);
        if (Mover::kScaled)
          scale[k] = __ldcg(reinterpret_cast<const float*>(row[k] + scale_offset(a.width)));
        if (lane == 0) {
          hot += static_cast<int>(at.rank) == a.from.ranks;
          crossed += crosses(a.from, at);
        }
      }
    for (std::uint64_t c = lane; c < pieces; c += kLanes) {
      typename Mover::Piece piece[kInFlight];
#pragma unroll
      for (int k = 0; k < kInFlight; ++k)
        if (first + k * step < count)
          piece[k] =
              __ldcg(reinterpret_cast<const typename Mover::Piece*>(row[k] + c * Mover::kInBytes));
#pragma unroll
      for (int k = 0; k < kInFlight; ++k)
        if (first + k * step < count) {
          const auto value = rows.written(Mover::value(piece[k], scale[k]), place[k], c);
          std::byte* const to = a.out + place[k] * a.out_stride + c * Mover::kOutBytes;
          *reinterpret_cast<std::remove_const_t<decltype(value)>*>(to) = value;
        }
    }
  }
  if (a.counts != nullptr) add_counts(a.counts, hot, crossed);
}

template <class Mover, class Rows>
void launch_gather(const GatherRows& a, const Rows& rows, cudaStream_t stream) {
  constexpr std::uint64_t kInFlight = 4, kMostBlocks = 4096;
  const std::uint64_t pieces = a.width * size_of(a.type) / Mover::kInBytes;
  for_lanes<1>(pieces, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    constexpr std::uint64_t kOfBlock = kGatherThreads / kLanes * kInFlight;
    const auto blocks = static_cast<unsigned>(
        std::clamp<std::uint64_t>((a.count + kOfBlock - 1) / kOfBlock, 1, kMostBlocks));
    gather_kernel<Mover, Rows, kLanes><<<blocks, kGatherThreads, 0, stream>>>(a, pieces, rows);
  });
  check_cuda(cudaGetLastError(), "gathering rows");
}

// Returns the greatest power of two, at most 16, that divides the number.
inline std::uint64_t alignment_of(std::uint64_t bits) {
  bits |= 16;
  return bits & (0 - bits);
}
inline std::uint64_t alignment_of(const StoredRows& rows) {
  std::uint64_t all = rows.stride;
  const int bases = rows.ranks + (rows.hot == nullptr ? 0 : 1);
  for (int r = 0; r < bases; ++r) all |= reinterpret_cast<std::uintptr_t>(rows.base[r]);
  return alignment_of(all);
}
// Returns the same of the results.
inline std::uint64_t alignment_of_results(const GatherRows& a) {
  return alignment_of(reinterpret_cast<std::uintptr_t>(a.out) | a.out_stride);
}

// Moves four elements at a time where all rows allow it, else one.
template <class Four, class One, class Rows>
void launch_converted(const GatherRows& a, const Rows& rows, cudaStream_t stream) {
  const std::uint64_t in = alignment_of(a.from), out = alignment_of_results(a);
  if (in % Four::kInBytes == 0 && out == 16 && a.width % 4 == 0)
    launch_gather<Four>(a, rows, stream);
  else
    launch_gather<One>(a, rows, stream);
}

// Enqueues a gather of rows that become, or are, fp32.
template <class Rows>
void enqueue_floats(const GatherRows& a, const Rows& rows, cudaStream_t stream) {
  with_storage(
      a.type, [&]<class S>(S) { launch_converted<Convert<S, 4>, Convert<S, 1>>(a, rows, stream); });
}

// Enqueues a gather of these rows on the stream.
template <class Rows>
void enqueue_gather(const GatherRows& a, const Rows& rows, cudaStream_t stream) {
  if (a.count == 0 || a.width == 0) return;
  if (!is_copied(a.type)) return enqueue_floats(a, rows, stream);
  const std::uint64_t words =
      alignment_of(a.from) | alignment_of_results(a) | a.width * size_of(a.type);
  switch (alignment_of(words)) {
    case 1:
      return launch_gather<Copy<unsigned char>>(a, rows, stream);
    case 2:
      return launch_gather<Copy<unsigned short>>(a, rows, stream);
    case 4:
      return launch_gather<Copy<unsigned>>(a, rows, stream);
    case 8:
      return launch_gather<Copy<uint2>>(a, rows, stream);
    default:
      return launch_gather<Copy<uint4>>(a, rows, stream);
  }
}

}  // namespace plait
