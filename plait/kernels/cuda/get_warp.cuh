// One warp of the kernel of get.cu, and its work on a neighbour group.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>
#include <type_traits>

#include "plait/base/cuda/warp.cuh"
#include "plait/kernels/cuda/get.cuh"

namespace plait::get_detail {

inline constexpr int kBatch = 4;   // rows that a lane has in flight
inline constexpr int kStages = 2;  // batches of a warp in shared memory

// DeviceGetArgs and its groups, as the kernel takes them by value.
struct GetView {
  const RowGroup *local, *remote;
  std::uint64_t local_groups, remote_groups, warps;
  const std::uint32_t* row_of_sum;
  const Slot* slots;
  const float* weights;
  const float* x;
  std::uint64_t stride, width;
  std::uint32_t blocks;
  Slot block_begin[DeviceGetArgs::kMostBlocks];
  const float* block_x[DeviceGetArgs::kMostBlocks];
  float* y;
  std::uint64_t y_stride;
  const float* row_scale;
  bool accumulate;
  float* partial_sums;
  std::uint64_t partial_stride;
};

// kVec neighbouring columns of a row: 1, or 4 at a multiple of 16 bytes.
template <int kVec>
struct alignas(4 * kVec) Piece {
  float value[kVec];

  // load() reads through the read-only cache. add() adds `other` times `factor`.
  static __device__ Piece load(const float* from) {
    if constexpr (kVec == 1) return {__ldg(from)};
    if constexpr (kVec == 4) {
      const float4 raw = __ldg(reinterpret_cast<const float4*>(from));
      return {raw.x, raw.y, raw.z, raw.w};
    }
  }
  __device__ void add(const Piece& other, float factor) {
#pragma unroll
    for (int i = 0; i < kVec; ++i) value[i] = fmaf(factor, other.value[i], value[i]);
  }
  // Writes the first `count` columns, or adds them to memory that no other thread writes.
  __device__ void store(float* to, std::uint64_t count, bool accumulate) const {
    if (kVec > 1 && count >= kVec && reinterpret_cast<std::uintptr_t>(to) % sizeof(Piece) == 0) {
      Piece sum = *this;
      if (accumulate) sum.add(*reinterpret_cast<const Piece*>(to), 1);
      *reinterpret_cast<Piece*>(to) = sum;
      return;
    }
#pragma unroll
    for (int i = 0; i < kVec; ++i)
      if (i < count) to[i] = accumulate ? to[i] + value[i] : value[i];
  }
  // Adds the first `count` columns to memory that other threads add to.
  __device__ void add_atomically(float* to, std::uint64_t count) const {
#pragma unroll
    for (int i = 0; i < kVec; ++i)
      if (i < count) atomicAdd(to + i, value[i]);
  }
};

// A warp's groups of one kind: lane k holds the k-th. Warp w of `warps` takes the w-th share of
// all.
struct Share {
  RowGroup mine{};
  int groups;

  // Loads the share of warp `warp` from a list of `count` groups.
  __device__ Share(const RowGroup* all, std::uint64_t count, std::uint64_t warp,
                   std::uint64_t warps, int lane) {
    const std::uint64_t first = warp * count / warps;
    groups = static_cast<int>((warp + 1) * count / warps - first);
    if (lane < groups) mine = all[first + lane];
  }
};

// The edges of one group; slot and weight belong to this lane's edge.
struct Edges {
  std::uint32_t count;
  Slot slot;
  float weight;
};

// One warp of a block. kLanes lanes read kVec columns each of a row; all lanes call its functions
// together.
template <int kVec, int kLanes, bool kWeighted>
class GetWarp {
 public:
  // Neighbours that the warp reads at once.
  static constexpr int kNeighbours = kWarp / kLanes;
  using Sum = Piece<kVec>;

  // shared: memory of the block, kStages x kBatch x kWarp sums per warp; unused if nothing is
  // fetched.
  __device__ GetWarp(const GetView& view, Sum* shared)
      : a(view),
        lane(threadIdx.x % kWarp),
        neighbour(lane / kLanes),
        column((blockIdx.y * kLanes + lane % kLanes) * kVec),
        inside(column < view.width),
        fetched(shared + threadIdx.x / kWarp * (kStages * kBatch * kWarp) + lane) {}

  // Returns the edges of the k-th group; none after the last group, where lanes hold empty ones.
  __device__ Edges edges_of(const Share& share, int k) const {
    const EdgeOffset begin = __shfl_sync(kAll, share.mine.begin, k);
    Edges edges{__shfl_sync(kAll, share.mine.edges, k), 0, 0};
    if (lane < edges.count) {
      edges.slot = __ldcs(a.slots + begin + lane);
      if constexpr (kWeighted) edges.weight = __ldcs(a.weights + begin + lane);
    }
    return edges;
  }

  // Return where the row of a local or a remote slot stands.
  __device__ const float* local_row(Slot slot) const { return a.x + slot * a.stride; }
  __device__ const float* remote_row(Slot slot) const {
    std::uint32_t block = 0;
    while (block + 1 < a.blocks && a.block_begin[block + 1] <= slot) ++block;
    return a.block_x[block] + (slot - a.block_begin[block]) * a.stride;
  }

  // Adds rows to `sum` as they are loaded. `row`: the row of this lane's edge.
  __device__ void sum_rows(const Edges& edges, const float* row, Sum& sum) const {
    for (int step = 0; step * kNeighbours < edges.count; step += kBatch) {
      Sum loaded[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const float* const from = row_of_edge(row, step + k);
        loaded[k] = Sum{};
        if (is_read(edges.count, step + k)) loaded[k] = Sum::load(from);
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) sum.add(loaded[k], weight_of_edge(edges, step + k));
    }
  }

  // Starts to copy a batch of rows, from edge step x kNeighbours on, into a stage of shared memory.
  __device__ void fetch(std::uint32_t edges, const float* row, int step, int stage) const {
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      const float* const from = row_of_edge(row, step + k);
      if (is_read(edges, step + k))
        __pipeline_memcpy_async(fetched + (stage * kBatch + k) * kWarp, from, sizeof(Sum));
    }
    __pipeline_commit();
  }

  // Adds rows whose first batch is being fetched, and starts to fetch the first batch of `next`.
  __device__ void sum_fetched(const Edges& edges, const Edges& next, int& stage, Sum& sum) const {
    const float* const row = remote_row(edges.slot);
    for (int step = 0; step * kNeighbours < edges.count; step += kBatch) {
      if ((step + kBatch) * kNeighbours < edges.count)
        fetch(edges.count, row, step + kBatch, 1 - stage);
      else
        fetch(next.count, remote_row(next.slot), 0, 1 - stage);
      __pipeline_wait_prior(1);
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const float weight = weight_of_edge(edges, step + k);
        if (is_read(edges.count, step + k)) sum.add(fetched[(stage * kBatch + k) * kWarp], weight);
      }
      stage = 1 - stage;
    }
  }

  // Adds the sums of lanes that read the same columns, and writes them as the k-th group's target
  // asks.
  __device__ void put(const Share& share, int k, Sum sum) const {
    const std::uint32_t target = __shfl_sync(kAll, share.mine.target, k);
#pragma unroll
    for (int distance = kLanes; distance < kWarp; distance *= 2)
#pragma unroll
      for (int i = 0; i < kVec; ++i) sum.value[i] += __shfl_xor_sync(kAll, sum.value[i], distance);
    if (neighbour > 0 || !inside) return;
    const std::uint64_t count = a.width - column;
    const bool alone = (target & RowGroup::kPartial) == 0;
    const std::uint32_t number = target & ~RowGroup::kPartial;
    if (!alone && a.partial_sums != nullptr)
      return sum.store(a.partial_sums + number * a.partial_stride + column, count, false);
    const std::uint32_t row = alone ? number : a.row_of_sum[number];
    if (a.row_scale != nullptr)
#pragma unroll
      for (int i = 0; i < kVec; ++i) sum.value[i] *= a.row_scale[row];
    float* const y = a.y + row * a.y_stride + column;
    alone ? sum.store(y, count, a.accumulate) : sum.add_atomically(y, count);
  }

 private:
  __device__ bool is_read(std::uint32_t edges, int step) const {
    return inside && step * kNeighbours + neighbour < edges;
  }
  __device__ const float* row_of_edge(const float* row, int step) const {
    const auto address = reinterpret_cast<std::uintptr_t>(row);
    return reinterpret_cast<const float*>(
               __shfl_sync(kAll, address, step * kNeighbours + neighbour)) +
           column;
  }
  __device__ float weight_of_edge(const Edges& edges, int step) const {
    return kWeighted ? __shfl_sync(kAll, edges.weight, step * kNeighbours + neighbour) : 1;
  }

  const GetView& a;
  const int lane, neighbour;
  const std::uint32_t column;
  const bool inside;
  Sum* const fetched;  // this lane's: kStages x kBatch, kWarp apart
};

}  // namespace plait::get_detail
