// y = A x is bound by reading rows of x: 4 bytes per edge of columns against width x 4 bytes of x.
// On an H200 rows come from memory at 2 to 3 TB/s and from the L2 cache at about 10, so speed
// depends on how many reads the caches serve and how many are in flight:
//
//   - A warp works on one neighbour group. Where a slice of a row is narrower than a warp's 512
//     bytes, its lanes are split over several neighbours, and their sums are added by shuffles.
//   - A group of two edges of 256 bytes is a trip to memory for its record, one for its columns,
//     one for its rows of x, and one to write its sum. A warp that made these trips for one group
//     after the other would have 512 bytes under way, a fifth of what an H200 needs. So where
//     groups are short on average, several share a warp, and wide ones come in pairs.
//   - Four 16-byte loads per lane are in flight before the first is used; more would take
//     registers, and with them warps: 40 to 48 warps per SM with narrow slices or short groups were
//     best, 32 with wide slices of long ones.
//   - The width is cut into slices, worked on one after the other, so that a slice of all rows of x
//     stays in the L2 cache where it can. Short groups reuse little: their slices are as wide as
//     can be.
//   - Groups come in an order that puts rows of one cluster side by side (RowGroupOptions).
//   - Columns, weights and y pass through once: they are marked to be evicted first.
//   - Sums of at most four columns of a matrix with short rows are bound by other bytes; they have
//     a kernel of their own (spmm_tiles.cu).
//   - A small matrix is bound by launches, and by the time of its longest row: several warps of a
//     block share a row there (spmm_split.cu).
//   - Rows of y that stand at any float are written 16 bytes per lane too: the sums are shifted
//     over the lanes to where 16 bytes begin.
//
// docs/performance.md has the designs that were tried.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <type_traits>

#include "plait/base/cuda/warp.cuh"
#include "plait/base/error.h"
#include "plait/base/row_stride.h"
#include "plait/kernels/cuda/spmm.cuh"
#include "plait/kernels/cuda/spmm_edges.cuh"
#include "plait/kernels/cuda/spmm_partial_sums.cuh"
#include "plait/kernels/cuda/spmm_rows.cuh"
#include "plait/kernels/cuda/spmm_split.cuh"
#include "plait/kernels/cuda/spmm_tiles.cuh"
#include "plait/kernels/row_cut.h"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr std::uint32_t kWarps = kThreads / kWarp;
constexpr std::uint64_t kMostSlices = 65535;  // rows of blocks in a grid
static_assert(kMostSpmmWidth == kMostSlices * kHubColumns);

// Returns the blocks per SM that leave enough registers for the loads in flight (measured on an
// H200).
template <int kVec, int kLanes, bool kWeighted, int kShare>
constexpr int blocks_per_sm() {
  if (kShare > 0 && kVec > 4) return 4;
  if (kShare > 0) return kLanes == kWarp && !kWeighted ? 6 : 5;
  if (kWeighted || kLanes > 8) return 4;
  return kVec > 4 ? 5 : 6;
}

// One warp sums a long group of rows that one lane reads at once. Each lane reads its own
// neighbours' columns, so that none waits for another one's.
template <class X, class Y, int kVec, bool kWeighted>
__device__ __forceinline__ void sum_group_by_lanes(const SpmmView& a, std::uint32_t number) {
  using Load = Piece<X, kVec>;
  const std::uint32_t lane = threadIdx.x % kWarp;
  const RowGroup group = a.groups[number];
  const X* const x = first_element<X, kVec, 1>(a);
  const Slot* const columns = a.columns + group.begin;
  const float* const weights = kWeighted ? a.weights + group.begin : nullptr;

  Slot next[kInFlight];
  [[maybe_unused]] float next_weight[kInFlight];
  const auto read_columns = [&](std::uint32_t first) {
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const std::uint32_t edge = first + k * kWarp;
      next[k] = edge < group.edges ? __ldcs(columns + edge) : 0;
      if constexpr (kWeighted) next_weight[k] = edge < group.edges ? __ldcs(weights + edge) : 0;
    }
  };
  float sum[kVec] = {};
  read_columns(lane);
  for (std::uint32_t first = lane; first < group.edges; first += kInFlight * kWarp) {
    typename Load::Raw loaded[kInFlight];
    [[maybe_unused]] float factor[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      loaded[k] = typename Load::Raw{};
      if constexpr (kWeighted) factor[k] = next_weight[k];
      if (first + k * kWarp < group.edges)
        loaded[k] = Load::template load<false>(x + std::uint64_t{next[k]} * a.x_stride);
    }
    read_columns(first + kInFlight * kWarp);
    add_batch<kWeighted, Load>(sum, loaded, factor);
  }
  add_over_lanes<1, kWarp>(sum);
  put<Y, kVec, 1>(a, group.target, lane == 0, sum);
}

template <class X, class Y, int kVec, int kLanes, bool kWeighted>
__device__ __forceinline__ void sum_long_group(const SpmmView& a, std::uint32_t number) {
  const RowGroup group = a.groups[number];
  float sum[kVec] = {};
  sum_edges<X, kVec, kLanes, kWeighted>(a, group.begin, group.edges, sum);
  put<Y, kVec, kLanes>(a, group.target, threadIdx.x % kWarp < kLanes, sum);
}

// Short groups that the lanes of one share of a warp work on at once.
template <int kVec, int kLanes>
constexpr int kShortAtOnce = kVec > 1 && kLanes >= 4 ? 2 : 1;

// kShare lanes sum kAtOnce short groups at once, from number `first` on; the shares of a warp take
// turns. So the latencies of many groups' records, columns, rows of x and rows of y overlap. The
// lanes of a share are split over several neighbours, as those of a warp are in a long group.
template <class X, class Y, int kVec, int kLanes, bool kWeighted, int kShare>
__device__ __forceinline__ void sum_short_groups(const SpmmView& a, std::uint32_t first) {
  using Load = Piece<X, kVec>;
  constexpr int kAtOnce = kShortAtOnce<kVec, kLanes>, kShares = kWarp / kShare;
  constexpr int kNeighbours = kShare / kLanes;  // of a group, that a share reads at once
  constexpr int kBatch = kInFlight / kAtOnce;   // times that it does so before it adds
  constexpr int kEach = kBatch * kNeighbours > kShare ? kBatch * kNeighbours / kShare : 1;
  constexpr int kHeld = kShare * kEach;  // columns of a group that its lanes hold, kEach each

  const int lane = threadIdx.x % kShare, first_lane = threadIdx.x % kWarp - lane;
  const int neighbour = lane / kLanes;
  const X* const x = first_element<X, kVec, kLanes>(a);
  EdgeOffset begin[kAtOnce];
  std::uint32_t edges[kAtOnce], target[kAtOnce], most = 0;
  bool there[kAtOnce];
#pragma unroll
  for (int r = 0; r < kAtOnce; ++r) {
    const std::uint32_t number = first + r * kShares + first_lane / kShare;
    there[r] = number < a.group_count;
    const RowGroup group = a.groups[there[r] ? number : a.group_count - 1];
    begin[r] = group.begin, target[r] = group.target;
    edges[r] = there[r] ? group.edges : 0;
    most = max(most, edges[r]);
  }
  most = __reduce_max_sync(kAll, most);

  Slot next[kAtOnce][kEach];
  [[maybe_unused]] float next_weight[kAtOnce][kEach];
  constexpr bool kAllHeld = kHeld >= kShortInLarge;  // columns are read once
  const auto read_columns = [&](std::uint32_t done) {
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r)
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const std::uint32_t edge = done + i * kShare + lane;
        const bool inside = edge < edges[r];
        next[r][i] = inside ? __ldcs(a.columns + begin[r] + edge) : 0;
        if constexpr (kWeighted)
          next_weight[r][i] = inside ? __ldcs(a.weights + begin[r] + edge) : 0;
      }
  };
  float sum[kAtOnce][kVec] = {};
  read_columns(0);
  for (std::uint32_t done = 0; done < most; done += kHeld) {
    Slot here[kAtOnce][kEach];
    [[maybe_unused]] float weight[kAtOnce][kEach];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r)
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        here[r][i] = next[r][i];
        if constexpr (kWeighted) weight[r][i] = next_weight[r][i];
      }
    if (!kAllHeld && done + kHeld < most) read_columns(done + kHeld);
#pragma unroll
    for (int step = 0; step < kHeld / kNeighbours; step += kBatch) {
      if (done + step * kNeighbours >= most) break;
      typename Load::Raw loaded[kAtOnce][kBatch];
      [[maybe_unused]] float factor[kAtOnce][kBatch];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r)
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          const int edge = (step + k) * kNeighbours;  // of the share's first lanes
          const int held = edge / kShare, from = first_lane + edge % kShare + neighbour;
          const Slot slot = __shfl_sync(kAll, here[r][held], from);
          if constexpr (kWeighted) factor[r][k] = __shfl_sync(kAll, weight[r][held], from);
          loaded[r][k] = typename Load::Raw{};
          if (done + edge + neighbour < edges[r])
            loaded[r][k] = Load::template load<false>(x + std::uint64_t{slot} * a.x_stride);
        }
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) add_batch<kWeighted, Load>(sum[r], loaded[r], factor[r]);
    }
  }
#pragma unroll
  for (int r = 0; r < kAtOnce; ++r) {
    add_over_lanes<kLanes, kShare>(sum[r]);
    put<Y, kVec, kLanes>(a, target[r], there[r] && neighbour == 0, sum[r]);
  }
}

// The first blocks work on long groups, one per warp; the others on short groups, one per share of
// a warp. kShare is 0 if there are no short groups. There is one row of blocks per slice of kLanes
// x kVec columns.
template <class X, class Y, int kVec, int kLanes, bool kWeighted, int kShare>
__global__ void __launch_bounds__(kThreads, (blocks_per_sm<kVec, kLanes, kWeighted, kShare>()))
    spmm_kernel(const __grid_constant__ SpmmView a, const std::uint32_t long_blocks) {
  let_next_kernel_start();  // add_partial_sums() may get ready
  const std::uint32_t warp = threadIdx.x / kWarp;
  if (kShare == 0 || blockIdx.x < long_blocks) {
    const std::uint32_t number = blockIdx.x * kWarps + warp;
    if (number >= a.long_count) return;
    if constexpr (kLanes == 1)
      sum_group_by_lanes<X, Y, kVec, kWeighted>(a, number);
    else
      sum_long_group<X, Y, kVec, kLanes, kWeighted>(a, number);
  } else if constexpr (kShare > 0) {
    constexpr std::uint32_t kPerWarp = kWarp / kShare * kShortAtOnce<kVec, kLanes>;
    const std::uint32_t first =
        a.long_count + ((blockIdx.x - long_blocks) * kWarps + warp) * kPerWarp;
    if (first < a.group_count) sum_short_groups<X, Y, kVec, kLanes, kWeighted, kShare>(a, first);
  }
}

// Tells whether rows of x can be read 16 bytes at a time: padding up to 16 bytes is read too.
bool reads_whole_vectors(const DeviceSpmmArgs& args) {
  const std::uint64_t vec = 16 / size_of(args.x.type);
  return reinterpret_cast<std::uintptr_t>(args.x.data) % 16 == 0 && args.x.stride % vec == 0 &&
         (args.width + vec - 1) / vec * vec <= args.x.stride;
}

// Launches the kernel in which kShare lanes work on a short group.
template <class X, class Y, int kVec, int kLanes, int kShare>
void launch(const SpmmView& view, cudaStream_t stream) {
  std::uint32_t blocks = (view.long_count + kWarps - 1) / kWarps;
  const std::uint32_t long_blocks = blocks;
  if constexpr (kShare > 0) {
    constexpr std::uint32_t kGroups = kThreads / kShare * kShortAtOnce<kVec, kLanes>;
    blocks += (view.group_count - view.long_count + kGroups - 1) / kGroups;
  }
  const auto slices = static_cast<unsigned>((view.width + kLanes * kVec - 1) / (kLanes * kVec));
  const dim3 grid(blocks, slices);
  if (view.weights != nullptr)
    spmm_kernel<X, Y, kVec, kLanes, true, kShare><<<grid, kThreads, 0, stream>>>(view, long_blocks);
  else
    spmm_kernel<X, Y, kVec, kLanes, false, kShare>
        <<<grid, kThreads, 0, stream>>>(view, long_blocks);
}

template <class X, class Y, int kVec>
void sum_groups(const SpmmView& view, const RowGroups& groups, int lanes, cudaStream_t stream) {
  for_lanes<1>(static_cast<std::uint64_t>(lanes), [&](auto constant) {
    constexpr int kLanes = decltype(constant)::value;
    if constexpr (kVec > 1)
      if (view.long_count == view.group_count) return launch<X, Y, kVec, kLanes, 0>(view, stream);
    // A lane that works on a row alone reads its columns one by one, which takes long above ten.
    constexpr int kLeast = 4;
    if constexpr (kLanes < kLeast)
      if (groups.most_edges() > EdgeOffset{10} * groups.size())
        return launch<X, Y, kVec, kLanes, kLeast>(view, stream);
    launch<X, Y, kVec, kLanes, kLanes>(view, stream);
  });
}

// Returns the slice that long groups are summed in: one line of the cache if that much of each row
// of x fits in half of the L2 cache, else two. A slice of rows that do not begin with a line reads
// parts of one more line: rows of more than one slice are then summed in slices twice as wide.
std::uint64_t slice_of_long_groups(const DeviceSpmmArgs& args) {
  constexpr std::uint64_t kLine = 128;
  int device = 0, l2_bytes = 0;
  check_cuda(cudaGetDevice(&device), "the GPU");
  check_cuda(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "the GPU");
  const std::uint64_t element = size_of(args.x.type);
  const bool in_l2 = args.x_rows <= static_cast<std::uint64_t>(l2_bytes) / 2 / kLine;
  const std::uint64_t slice = in_l2 ? kLine : 2 * kLine;
  const bool begins_with_line = args.x.stride * element % kLine == 0;
  return !begins_with_line && args.width * element > slice ? 2 * slice : slice;
}

std::uint64_t slice_bytes(const DeviceSpmmArgs& args) {
  constexpr std::uint64_t kFixedSlice = 256, kWholeSlice = 512;
  if (args.slice_bytes != 0) return args.slice_bytes;
  if (args.fixed_order) return kFixedSlice;
  return args.groups->short_size() > 0 ? kWholeSlice : slice_of_long_groups(args);
}

// Tells whether a sum is cut into tiles rather than groups.
bool takes_tiles(const DeviceSpmmArgs& args) {
  const bool can = args.width > 0 && args.width <= kEvenWidth && args.groups->even().size() > 0 &&
                   !args.fixed_order;
  require<UsageError>(can || args.narrow != NarrowCut::tiles, "this sum cannot be cut into tiles");
  if (args.narrow != NarrowCut::automatic) return args.narrow == NarrowCut::tiles;
  return can && args.groups->gains_by_even_cut();
}

SpmmView view_of(const DeviceSpmmArgs& args) {
  return {.groups = args.groups->groups(),
          .group_count = args.groups->size(),
          .long_count = args.groups->size() - (args.fixed_order ? 0 : args.groups->short_size()),
          .columns = args.columns,
          .weights = args.weights,
          .x = args.x.data,
          .x_stride = args.x.stride,
          .width = args.width,
          .y = args.y.data,
          .y_stride = args.y.stride,
          .row_scale = args.row_scale,
          .accumulate = args.accumulate,
          .y_in_vectors =
              args.y.stride % 4 == 0 &&
              reinterpret_cast<std::uintptr_t>(args.y.data) % (4 * size_of(args.y.type)) == 0,
          .partial_sums = args.partial_sums,
          .partial_stride = row_stride(args.width)};
}

}  // namespace

std::uint64_t spmm_scratch(const RowGroups& groups, std::uint64_t width) {
  const std::uint64_t of_groups = groups.partial_sums();
  const bool narrow = width <= kEvenWidth;
  return (narrow ? std::max(of_groups, groups.even().partial_sums()) : of_groups) *
         row_stride(width);
}

void spmm(const DeviceSpmmArgs& given, cudaStream_t stream) {
  DeviceSpmmArgs args = given;
  const bool vectors = reads_whole_vectors(args);
  const bool whole = args.groups->whole() != nullptr && args.narrow != NarrowCut::tiles &&
                     !args.fixed_order && (vectors || args.width <= kEvenWidth);
  if (whole) args.groups = args.groups->whole();
  const DType x = args.x.type, y = args.y.type;
  require<UsageError>(y == DType::f32 || y == x, "x of {} cannot be summed into y of {}",
                      to_string(x), to_string(y));
  require<UsageError>(args.x.stride >> 32 == 0, "rows of x are {} elements apart", args.x.stride);
  const bool tiles = takes_tiles(args);
  require<UsageError>(args.partial_sums != nullptr || (!tiles && args.groups->cut_size() == 0),
                      "cut rows need memory for partial sums");
  if (args.groups->size() == 0 || args.width == 0) return;
  const SpmmView view = view_of(args);
  if (tiles) return spmm_by_tiles(view, args.groups->even(), x, y, stream);
  const std::uint64_t vec = vectors ? 16 / size_of(x) : 1;
  const std::uint64_t most = vectors ? slice_bytes(args) / 16 : kWarp;
  const auto lanes = static_cast<int>(std::bit_ceil(std::min((args.width + vec - 1) / vec, most)));
  require<UsageError>(args.width <= kMostSlices * std::min<std::uint64_t>(lanes * vec, kHubColumns),
                      "rows of {} elements are too wide for one sum", args.width);
  if (whole && vectors && split_pays(view, lanes, vec))
    return spmm_by_split_rows(view, lanes, x, y, stream);
  with_types(x, y, [&]<class X, class Y>(X, Y) {
    vectors ? sum_groups<X, Y, 16 / sizeof(X)>(view, *args.groups, lanes, stream)
            : sum_groups<X, Y, 1>(view, *args.groups, lanes, stream);
  });
  check_cuda(cudaGetLastError(), "spmm");
  add_partial_sums(view, cut_rows_of(*args.groups), y, stream);
}

}  // namespace plait
