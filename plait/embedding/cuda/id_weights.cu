// A group of lanes works on one bag and keeps to its ids in their order: each lane multiplies
// columns of its own, and shuffles add the lanes in a fixed pattern.
#include "plait/base/cuda/warp.cuh"
#include "plait/embedding/cuda/id_weights.cuh"

namespace plait {
namespace {

// Adds the values of the lanes of a group. All of these call it together, but not all of a warp.
template <int kLanes>
__device__ float sum_of_lanes(float value) {
  const unsigned group = threadIdx.x % kWarp / kLanes * kLanes;
  const unsigned lanes = (kLanes == kWarp ? kAll : (1u << (kLanes % kWarp)) - 1) << group;
  for (int step = kLanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(lanes, value, step);
  return value;
}

template <class T, int kLanes>
__global__ void __launch_bounds__(kBagThreads)
    multiply_kernel(const __grid_constant__ DevicePieces pieces,
                    const __grid_constant__ DeviceBags bags, bool own, const float* gradients,
                    IdProducts to) {
  BagPlace at;
  if (!find_bag<kLanes>(pieces, bags, at)) return;
  const DevicePiece piece = pieces.at[at.t];
  const bool shared = piece.split == EmbeddingSplit::columns;  // then 0 without columns
  if (piece.columns == 0 && !shared) return;
  if (piece.split == EmbeddingSplit::replicated && !own) return;
  const float* const gradient =
      gradients + (at.b * pieces.tables + at.t) * pieces.width + piece.first_column;
  float* const out = to.at + (shared ? pieces.rank * to.ids : 0);
  const unsigned lane = threadIdx.x % kLanes;
  for (EdgeOffset e = at.begin; e < at.end; ++e) {
    const Slot row = own_row(pieces, piece, bags.ids[e]);
    if (row == kNoRow) continue;
    const T* const x = row_of<T>(piece, row);
    float product = 0;
    for (std::uint64_t c = lane; c < piece.columns; c += kLanes)
      product = fmaf(widened(x[c]), gradient[c], product);
    product = sum_of_lanes<kLanes>(product);
    if (lane == 0) out[e] = product;
  }
}

template <int kLanes>
__global__ void __launch_bounds__(kBagThreads)
    collect_kernel(const __grid_constant__ DevicePieces pieces,
                   const __grid_constant__ DeviceBags bags, IdProducts from, float* out) {
  BagPlace at;
  if (!find_bag<kLanes>(pieces, bags, at)) return;
  const int shares = pieces.at[at.t].split == EmbeddingSplit::columns ? pieces.ranks : 1;
  for (EdgeOffset e = at.begin + threadIdx.x % kLanes; e < at.end; e += kLanes) {
    float sum = 0;
    if (bags.ids[e] != kNoRow)
      for (int share = 0; share < shares; ++share) sum += from.at[share * from.ids + e];
    out[e] = sum;
  }
}

}  // namespace

void multiply_rows(const DevicePieces& pieces, const DeviceBags& bags, bool own,
                   const float* gradients, const IdProducts& to, cudaStream_t stream) {
  if (bags.per_table == 0) return;
  with_number(pieces.type, [&]<class T>(T) {
    for_lanes<4>(pieces.width, [&](auto lanes) {
      constexpr int kLanes = decltype(lanes)::value;
      multiply_kernel<T, kLanes><<<blocks_of_bags(pieces, bags, kLanes), kBagThreads, 0, stream>>>(
          pieces, bags, own, gradients, to);
    });
  });
  check_cuda(cudaGetLastError(), "gradients of weights");
}

void collect_products(const DevicePieces& pieces, const DeviceBags& bags, const IdProducts& from,
                      float* out, cudaStream_t stream) {
  if (bags.per_table == 0) return;
  constexpr int kLanes = 4;
  collect_kernel<kLanes>
      <<<blocks_of_bags(pieces, bags, kLanes), kBagThreads, 0, stream>>>(pieces, bags, from, out);
  check_cuda(cudaGetLastError(), "gradients of weights");
}

}  // namespace plait
