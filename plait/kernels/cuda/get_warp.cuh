// One warp of the kernels of strategy get, and its work on a neighbour group.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>
#include <type_traits>

#include "plait/base/cuda/warp.cuh"
#include "plait/kernels/cuda/get.cuh"
#include "plait/plan/get_resources.h"

namespace plait::get_detail {

inline constexpr int kStages = kGetStages;  // batches of a warp in shared memory

// The ways to read remote rows, and whether groups may have more edges than a warp has lanes.
enum class Way {
  load,        // by warps, which wait for them
  fetch,       // by warps, one batch ahead
  load_long,   // the same for long groups
  fetch_long,  // the same for long groups
  by_thread,   // a lane reads a whole row, a batch ahead or not; for groups of any size
  by_block,    // all threads of a block read a row, a batch ahead or not; for groups of any size
  // The same, and by warps, by functions of NVSHMEM
  nvshmem_thread,
  nvshmem_warp,
  nvshmem_block,
};
constexpr bool takes_long_groups(Way way) { return way >= Way::load_long; }
constexpr bool fetches(Way way) { return way != Way::load && way != Way::load_long; }
constexpr bool by_warp(Way way) { return way < Way::by_thread; }
constexpr bool by_nvshmem(Way way) { return way >= Way::nvshmem_thread; }
constexpr bool in_step(Way way) { return way == Way::by_block || way == Way::nvshmem_block; }

// The groups of one kind, and the warps that have them, at least one.
struct GroupList {
  const RowGroup* groups;
  std::uint64_t count, first_warp, warps;
};

// DeviceGetArgs and its groups, as the kernel takes them by value.
struct GetView {
  GroupList local, remote;
  std::uint64_t warps;
  bool ahead;  // fetch a batch ahead; ways of warps alone do not ask
  const std::uint32_t* row_of_sum;
  const Slot* slots;
  const float* weights;  // null: all 1
  const float* x;
  std::uint64_t stride, width;
  std::uint32_t blocks;
  Slot block_begin[DeviceGetArgs::kMostBlocks];
  const float* block_x[DeviceGetArgs::kMostBlocks];
  std::uint8_t block_rank[DeviceGetArgs::kMostBlocks];  // for NVSHMEM
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

// A warp's groups of one kind: lane k holds the k-th. The w-th warp of a list takes the w-th share
// of its groups.
struct Share {
  RowGroup mine{};
  int groups;

  // Loads the share of warp `number` of the grid.
  __device__ Share(const GroupList& list, std::uint64_t number, int lane) {
    const std::uint64_t warp = number - list.first_warp;
    const std::uint64_t first = warp * list.count / list.warps;
    groups = static_cast<int>((warp + 1) * list.count / list.warps - first);
    if (warp >= list.warps) groups = 0;  // also if the list's warps come later
    if (lane < groups) mine = list.groups[first + lane];
  }
};

// A chunk of a group: all its edges or, in a long group, as many as a warp has lanes. Slot and
// weight belong to this lane's edge.
struct Edges {
  std::uint32_t count;
  bool last;  // of its group
  Slot slot;
  float weight;
};

// The next chunk: a group of a share, and in a long group its first edge.
struct Place {
  int group = 0;
  std::uint32_t edge = 0;
};

// One warp of a block. kLanes lanes read kVec columns each of a row; all lanes call its functions
// together and, if blocks read rows, all warps of a block call those that fetch. Functions: of
// NVSHMEM (nvshmem/get_kernels.cu), which this header must not name, as all other code is built
// without it; its ways are built with weights alone, which may be null.
template <int kVec, int kLanes, bool kWeighted, Way kWay, class Functions = void>
class GetWarp {
 public:
  // Neighbours that the warp reads at once, and rows of a batch.
  static constexpr int kNeighbours = kWarp / kLanes;
  // Rows that a lane has in flight: no more than a chunk of a warp's edges has for it.
  static constexpr int kBatch = kLanes < kGetBatch ? kLanes : kGetBatch;
  static constexpr int kRows = kBatch * kNeighbours;
  static constexpr bool kFetches = fetches(kWay), kByWarp = by_warp(kWay),
                        kLong = takes_long_groups(kWay), kInStep = in_step(kWay),
                        kByNvshmem = by_nvshmem(kWay);
  using Sum = Piece<kVec>;
  // A lane knows the remote row of its edge by this: its address, or for NVSHMEM its slot.
  using Remote = std::conditional_t<kByNvshmem, Slot, const float*>;

  // shared: memory of the block, kStages x kBatch x kWarp sums per warp, then kWarp RowToCopy per
  // warp if blocks read rows; unused if nothing is fetched.
  __device__ GetWarp(const GetView& view, Sum* shared)
      : a(view),
        lane(threadIdx.x % kWarp),
        neighbour(lane / kLanes),
        column((blockIdx.y * kLanes + lane % kLanes) * kVec),
        inside(column < view.width),
        fetched(shared + threadIdx.x / kWarp * (kStages * kBatch * kWarp) + lane) {}

  // Tells whether this warp has work left; if blocks read rows, whether any warp of the block has.
  static __device__ bool goes_on(bool work) { return kInStep ? __syncthreads_or(work) : work; }

  // Returns the next chunk, and moves on; none after the last group, where lanes hold empty ones.
  __device__ Edges next(const Share& share, Place& place, int k) const {
    const int group = kLong ? place.group : k;
    EdgeOffset begin = __shfl_sync(kAll, share.mine.begin, group);
    Edges edges{__shfl_sync(kAll, share.mine.edges, group), true, 0, 0};
    if constexpr (kLong) {
      begin += place.edge;
      edges.count -= place.edge;
      edges.last = edges.count <= kWarp;
      if (!edges.last) edges.count = kWarp;
      place.edge = edges.last ? 0 : place.edge + kWarp;
      place.group += edges.last;
    }
    if (lane < edges.count) {
      edges.slot = __ldcs(a.slots + begin + lane);
      if constexpr (kWeighted)
        edges.weight = kByNvshmem && a.weights == nullptr ? 1 : __ldcs(a.weights + begin + lane);
    }
    return edges;
  }

  // Return where the row of a local or a remote slot stands.
  __device__ const float* local_row(Slot slot) const { return a.x + slot * a.stride; }
  __device__ Remote remote_row(Slot slot) const {
    if constexpr (kByNvshmem)
      return slot;
    else
      return row_in_block(slot, block_of(slot));
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

  // Fetches the first batch of the first chunk, unless every batch is fetched when it is needed.
  __device__ void fetch_first(const Edges& edges, int stage) const {
    if (ahead()) fetch(edges.count, remote_row(edges.slot), 0, stage);
  }

  // Adds a chunk's rows. Their first batch is being fetched, and it starts to fetch the first batch
  // of `next`; or every batch is fetched when it is needed.
  __device__ void sum_fetched(const Edges& edges, const Edges& next, int& stage, Sum& sum) const {
    const Remote row = remote_row(edges.slot);
    for (int step = 0; goes_on(step * kNeighbours < edges.count); step += kBatch) {
      const bool mine = !kInStep || step * kNeighbours < edges.count;
      if (!ahead()) {
        fetch(edges.count, row, step, stage);
        if constexpr (!kByNvshmem) __pipeline_wait_prior(0);
      } else {
        // NVSHMEM waits for all rows that have been asked for, so it does so before the next ones.
        if constexpr (kByNvshmem) Functions::wait();
        if ((step + kBatch) * kNeighbours < edges.count)
          fetch(edges.count, row, step + kBatch, 1 - stage);
        else
          fetch(mine ? next.count : 0, remote_row(next.slot), 0, 1 - stage);
        if constexpr (!kByNvshmem) __pipeline_wait_prior(1);
      }
      wait_for_readers();
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const float weight = weight_of_edge(edges, step + k);
        if (is_read(edges.count, step + k)) sum.add(fetched[(stage * kBatch + k) * kWarp], weight);
      }
      if (mine) stage = 1 - stage;
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
  // A row of a batch, by its address from this slice's first column on or by its slot, and its
  // place in shared memory; null: there is no such row.
  struct RowToCopy {
    Remote from;
    Sum* to;
  };
  static_assert(sizeof(RowToCopy) == kGetRowToCopy);

  __device__ bool ahead() const { return kByWarp || a.ahead; }

  // Starts to copy a batch of rows, from edge step x kNeighbours on, into a stage of shared memory.
  // `row`: the row of this lane's edge.
  __device__ void fetch(std::uint32_t edges, Remote row, int step, int stage) const {
    if constexpr (kWay == Way::by_thread || kWay == Way::nvshmem_thread)
      fetch_by_thread(edges, row, step, stage);
    if constexpr (kInStep) fetch_by_block(edges, row, step, stage);
    if constexpr (kWay == Way::nvshmem_warp) get_by_warp(edges, row, step, stage);
    if constexpr (kByWarp)
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const float* const from = row_of_edge(row, step + k);
        if (is_read(edges, step + k))
          __pipeline_memcpy_async(fetched + (stage * kBatch + k) * kWarp, from, sizeof(Sum));
      }
    if constexpr (!kByNvshmem) __pipeline_commit();
  }

  // Lane r reads the r-th row of the batch, piece by piece.
  __device__ void fetch_by_thread(std::uint32_t edges, Remote row, int step, int stage) const {
    __syncwarp();  // all lanes have read what is overwritten
    const RowToCopy copy = row_to_copy(edges, row, step, stage);
    if (copy.to == nullptr) return;
    if constexpr (kByNvshmem)
      get_row(copy);
    else
      for (int piece = 0; piece * kVec < columns(); ++piece)
        __pipeline_memcpy_async(copy.to + piece, copy.from + piece * kVec, sizeof(Sum));
  }

  // Warps write the rows of their batches into a table. Then each row is read by the whole block,
  // one column per thread.
  __device__ void fetch_by_block(std::uint32_t edges, Remote row, int step, int stage) const {
    const int warps = blockDim.x / kWarp, warp = threadIdx.x / kWarp;
    auto* const table =
        reinterpret_cast<RowToCopy*>(fetched - lane + (warps - warp) * (kStages * kBatch * kWarp));
    const RowToCopy mine = row_to_copy(edges, row, step, stage);
    if (lane < kRows) table[warp * kRows + lane] = mine;
    __syncthreads();  // also: all warps have read what is overwritten
    for (int r = 0; r < warps * kRows; ++r) {
      const RowToCopy copy = table[r];
      if (copy.to == nullptr) continue;
      if constexpr (kByNvshmem)
        get_row(copy);
      else
        for (int c = threadIdx.x; c < columns(); c += blockDim.x)
          __pipeline_memcpy_async(reinterpret_cast<float*>(copy.to) + c, copy.from + c,
                                  sizeof(float));
    }
  }

  // The warp reads one row of the batch after the other. NVSHMEM's functions for warps wait for all
  // lanes first, so that these have read what is overwritten.
  __device__ void get_by_warp(std::uint32_t edges, Slot slot, int step, int stage) const {
    const std::uint32_t first = step * kNeighbours;
    for (std::uint32_t r = 0; r < kRows && first + r < edges; ++r)
      get_row({__shfl_sync(kAll, slot, (first + r) % kWarp), place_of_row(stage, r)});
  }

  // The threads that read a row together have NVSHMEM copy this slice of it: the block's row at
  // this rank's own address, from the rank that has the block.
  __device__ void get_row(const RowToCopy& copy) const {
    const std::uint32_t block = block_of(copy.from);
    const float* const from = row_in_block(copy.from, block) + blockIdx.y * (kLanes * kVec);
    Functions::template get<kWay>(reinterpret_cast<float*>(copy.to), from, columns(),
                                  a.block_rank[block], a.ahead);
  }

  // Returns the r-th row of a batch, for lane r.
  __device__ RowToCopy row_to_copy(std::uint32_t edges, Remote row, int step, int stage) const {
    const std::uint32_t edge = step * kNeighbours + lane;
    const bool none = lane >= kRows || edge >= edges;
    Sum* const to = none ? nullptr : place_of_row(stage, lane);
    if constexpr (kByNvshmem) {
      return {__shfl_sync(kAll, row, edge % kWarp), to};
    } else {
      const auto address = reinterpret_cast<std::uintptr_t>(row);
      const auto from = reinterpret_cast<const float*>(__shfl_sync(kAll, address, edge % kWarp));
      return {from + blockIdx.y * (kLanes * kVec), to};
    }
  }
  __device__ Sum* place_of_row(int stage, int row) const {
    return fetched - lane + stage * (kBatch * kWarp) + row * kLanes;
  }

  __device__ std::uint32_t block_of(Slot slot) const {
    std::uint32_t block = 0;
    while (block + 1 < a.blocks && a.block_begin[block + 1] <= slot) ++block;
    return block;
  }
  __device__ const float* row_in_block(Slot slot, std::uint32_t block) const {
    return a.block_x[block] + (slot - a.block_begin[block]) * a.stride;
  }

  // Returns the columns of this slice, with their padding.
  __device__ int columns() const {
    const std::uint64_t left = (a.width + kVec - 1) / kVec * kVec - blockIdx.y * (kLanes * kVec);
    return static_cast<int>(min(left, std::uint64_t{kLanes * kVec}));
  }

  // Waits until what other lanes have read, and waited for, is seen here.
  static __device__ void wait_for_readers() {
    if constexpr (kInStep)
      __syncthreads();
    else if constexpr (!kByWarp)
      __syncwarp();
  }

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
