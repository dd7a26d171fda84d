// Sums of short bags read rows at random: their speed is that of memory, if enough rows are on
// their way at once. A group of lanes works on one bag, each lane on columns of its own: 16 bytes
// per row if rows allow it. It loads kBatch rows before it adds the first of them, in the order of
// ids; at 64 warps per SM, 64 x 4 rows of 512 bytes are on their way, more than the memory of an
// H100 needs. Sums for other ranks are stored straight into their memory: no copy on this side.
#include <algorithm>

#include "plait/base/cuda/warp.cuh"
#include "plait/store/bag_maxima.h"
#include "plait/store/cuda/bag_sums.cuh"

namespace plait {
namespace {

// Rows on their way per group: as many bytes of each type of numbers.
template <class T>
constexpr int kBatch = 4 * sizeof(float) / sizeof(T);

template <class T, int kVec>
struct alignas(kVec * sizeof(T)) Columns {
  T value[kVec];
};

// Returns the place in BagSums::parts of the row of a rank and a bag.
__device__ std::uint64_t part_of(const DevicePieces& pieces, const DevicePiece& piece,
                                 const DeviceBags& bags, int rank, std::uint64_t b) {
  const std::uint64_t part = std::uint64_t{piece.divided} * pieces.ranks + rank;
  return (part * bags.per_table + b) * pieces.width;
}
// Returns the place in BagSums::whole of the first column of a piece.
__device__ std::uint64_t whole_of(const DevicePieces& pieces, const DevicePiece& piece,
                                  const BagPlace& at) {
  return (at.b * pieces.tables + at.t) * pieces.width + piece.first_column;
}

// Adds the rows of a bag in columns c .. c + kVec - 1.
template <class T, int kVec>
__device__ void add_rows(const DevicePieces& pieces, const DevicePiece& piece,
                         const DeviceBags& bags, const BagPlace& at, std::uint64_t c,
                         Columns<float, kVec>& sum) {
  for (EdgeOffset e = at.begin; e < at.end; e += kBatch<T>) {
    Columns<T, kVec> loaded[kBatch<T>];
    float weight[kBatch<T>];
#pragma unroll
    for (int k = 0; k < kBatch<T>; ++k) {
      const Slot row = e + k < at.end ? own_row(pieces, piece, bags.ids[e + k]) : kNoRow;
      weight[k] = row == kNoRow ? 0.0f : bags.weights == nullptr ? 1.0f : bags.weights[e + k];
      loaded[k] = {};
      if (row != kNoRow)
        loaded[k] = *reinterpret_cast<const Columns<T, kVec>*>(row_of<T>(piece, row) + c);
    }
#pragma unroll
    for (int k = 0; k < kBatch<T>; ++k)
#pragma unroll
      for (int i = 0; i < kVec; ++i)
        sum.value[i] = fmaf(weight[k], widened(loaded[k].value[i]), sum.value[i]);
  }
}

__device__ bool has_own_row(const DevicePieces& pieces, const DevicePiece& piece,
                            const DeviceBags& bags, const BagPlace& at) {
  for (EdgeOffset e = at.begin; e < at.end; ++e)
    if (own_row(pieces, piece, bags.ids[e]) != kNoRow) return true;
  return false;
}

template <class T, int kLanes, int kVec>
__global__ void __launch_bounds__(kBagThreads)
    sum_kernel(const __grid_constant__ DevicePieces pieces, const __grid_constant__ DeviceBags bags,
               bool own, const __grid_constant__ BagSums to) {
  BagPlace at;
  if (!find_bag<kLanes>(pieces, bags, at)) return;
  const DevicePiece piece = pieces.at[at.t];
  if (piece.columns == 0 || (piece.split == EmbeddingSplit::replicated && !own)) return;
  float* row = to.whole + whole_of(pieces, piece, at);
  if (piece.split == EmbeddingSplit::rows) {
    if (!has_own_row(pieces, piece, bags, at)) return;
    row = to.parts + part_of(pieces, piece, bags, pieces.rank, at.b);
  }
  const float share = pieces.mode == BagMode::mean ? share_of_id(bags, at.begin, at.end) : 1.0f;
  for (std::uint64_t c = threadIdx.x % kLanes * kVec; c < piece.columns; c += kLanes * kVec) {
    Columns<float, kVec> sum{};
    add_rows<T, kVec>(pieces, piece, bags, at, c, sum);
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum.value[i] *= share;
    *reinterpret_cast<Columns<float, kVec>*>(row + c) = sum;
  }
}

template <class T, int kLanes>
__global__ void __launch_bounds__(kBagThreads)
    maxima_kernel(const __grid_constant__ DevicePieces pieces,
                  const __grid_constant__ DeviceBags bags, bool own,
                  const __grid_constant__ BagSums to) {
  BagPlace at;
  if (!find_bag<kLanes>(pieces, bags, at)) return;
  const DevicePiece piece = pieces.at[at.t];
  if (piece.columns == 0 || (piece.split == EmbeddingSplit::replicated && !own)) return;
  const bool in_parts = piece.split == EmbeddingSplit::rows;
  const std::uint64_t first =
      in_parts ? part_of(pieces, piece, bags, pieces.rank, at.b) : whole_of(pieces, piece, at);
  for (std::uint64_t c = threadIdx.x % kLanes; c < piece.columns; c += kLanes) {
    Placed most;
    for (EdgeOffset e = at.begin; e < at.end; ++e) {
      const Slot row = own_row(pieces, piece, bags.ids[e]);
      if (row != kNoRow)
        most.take({widened(row_of<T>(piece, row)[c]), static_cast<Slot>(e - at.begin)});
    }
    if (in_parts && most.place == kNoPlace) return;
    (in_parts ? to.parts : to.whole)[first + c] = most.value;
    (in_parts ? to.part_places : to.whole_places)[first + c] = most.place;
  }
}

template <int kLanes>
__global__ void __launch_bounds__(kBagThreads)
    collect_kernel(const __grid_constant__ DevicePieces pieces,
                   const __grid_constant__ DeviceBags bags, const __grid_constant__ BagSums from,
                   const __grid_constant__ BagSums out) {
  BagPlace at;
  if (!find_bag<kLanes>(pieces, bags, at)) return;
  const DevicePiece piece = pieces.at[at.t];
  const std::uint64_t first = (at.b * pieces.tables + at.t) * pieces.width;
  const unsigned lane = threadIdx.x % kLanes;
  const bool max = pieces.mode == BagMode::max;
  if (piece.split == EmbeddingSplit::rows) {
    std::uint64_t owners = 0;  // one bit per rank, of at most 32
    for (EdgeOffset e = at.begin; e < at.end; ++e)
      if (bags.ids[e] != kNoRow) owners |= 1ull << place_in(pieces, piece, bags.ids[e]).rank;
    for (std::uint64_t c = lane; c < pieces.width; c += kLanes) {
      float sum = 0;
      Placed most;
      for (int r = 0; r < pieces.ranks; ++r) {
        if ((owners >> r & 1) == 0) continue;
        const std::uint64_t part = part_of(pieces, piece, bags, r, at.b) + c;
        max ? most.take({from.parts[part], from.part_places[part]})
            : static_cast<void>(sum += from.parts[part]);
      }
      out.whole[first + c] = max ? most.value : sum;
      if (max) out.whole_places[first + c] = most.place;
    }
    return;
  }
  if (piece.split == EmbeddingSplit::replicated) return;
  for (std::uint64_t c = lane; c < pieces.width; c += kLanes) {
    if (c >= piece.first_column && c < piece.first_column + piece.columns) continue;
    out.whole[first + c] = from.whole[first + c];
    if (max) out.whole_places[first + c] = from.whole_places[first + c];
  }
}

}  // namespace

void sum_bags(const DevicePieces& pieces, const DeviceBags& bags, bool own, const BagSums& to,
              cudaStream_t stream) {
  if (bags.per_table == 0) return;
  const auto launch = [&]<class T>(T, auto vec) {
    constexpr int kVec = decltype(vec)::value;
    for_lanes<4>((pieces.width + kVec - 1) / kVec, [&](auto lanes) {
      constexpr int kLanes = decltype(lanes)::value;
      const unsigned blocks = blocks_of_bags(pieces, bags, kLanes);
      if constexpr (kVec == 1) {
        if (pieces.mode == BagMode::max) {
          maxima_kernel<T, kLanes><<<blocks, kBagThreads, 0, stream>>>(pieces, bags, own, to);
          return;
        }
      }
      sum_kernel<T, kLanes, kVec><<<blocks, kBagThreads, 0, stream>>>(pieces, bags, own, to);
    });
  };
  const bool in_vectors = pieces.in_vectors && pieces.mode != BagMode::max;
  with_number(pieces.type, [&]<class T>(T number) {
    in_vectors ? launch(number, std::integral_constant<int, 4>{})
               : launch(number, std::integral_constant<int, 1>{});
  });
  check_cuda(cudaGetLastError(), "sums of bags");
}

void collect_bags(const DevicePieces& pieces, const DeviceBags& bags, const BagSums& from,
                  const BagSums& out, cudaStream_t stream) {
  if (bags.per_table == 0 || pieces.ranks == 1) return;
  for_lanes<4>(pieces.width, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    collect_kernel<kLanes>
        <<<blocks_of_bags(pieces, bags, kLanes), kBagThreads, 0, stream>>>(pieces, bags, from, out);
  });
  check_cuda(cudaGetLastError(), "sums of bags");
}

}  // namespace plait
