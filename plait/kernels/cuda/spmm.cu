// y = A x is bound by reading rows of x: 4 bytes per edge of columns against width x 4 bytes of x.
// On an H200 rows come from memory at 2 to 3 TB/s and from the L2 cache at about 10, so speed
// depends on how many reads the caches serve and how many are in flight:
//
//   - A warp works on one neighbour group. Where a slice of a row is narrower than a warp's 512
//     bytes, its lanes are split over several neighbours, and their sums are added by shuffles.
//   - Four 16-byte loads per lane are in flight before the first is used; more would take
//     registers, and with them warps: 48 warps per SM with narrow slices were best, 32 with wide
//     ones.
//   - The width is cut into slices, worked on one after the other, so that a slice of all rows of x
//     stays in the L2 cache where it can.
//   - Groups come in an order that puts rows of one cluster side by side (RowGroupOptions).
//   - Columns, weights and y pass through once: they are marked to be evicted first.
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
#include "plait/kernels/row_cut.h"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr int kAddThreads = 128;
constexpr int kInFlight = 4;  // loads of x per lane

struct SpmmView {
  const RowGroup* groups;
  std::uint32_t group_count;
  const Slot* columns;
  const float* weights;
  const void* x;
  std::uint64_t x_stride, width;
  void* y;
  std::uint64_t y_stride;
  const float* row_scale;
  bool accumulate;
  bool y_in_vectors;  // all rows of y begin at multiples of 16 bytes
  float* partial_sums;
  std::uint64_t partial_stride;
};

__device__ float to_float(float value) { return value; }
__device__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ float to_float(__half value) { return __half2float(value); }

// kVec elements of a row, as they are loaded.
template <class T, int kVec>
struct Piece {
  using Raw = std::conditional_t<kVec == 1, T, uint4>;
  static_assert(kVec == 1 || kVec * sizeof(T) == sizeof(uint4));

  // Ordered: volatile keeps all loads of a batch before the first use of one.
  template <bool kOrdered>
  static __device__ Raw load(const T* from) {
    if constexpr (!kOrdered) {
      return __ldg(reinterpret_cast<const Raw*>(from));
    } else {
      static_assert(kVec > 1);
      Raw raw;
      asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(raw.x), "=r"(raw.y), "=r"(raw.z), "=r"(raw.w)
                   : "l"(from));
      return raw;
    }
  }
  static __device__ void add(float (&sum)[kVec], const Raw& raw, float weight) {
    const T* values = reinterpret_cast<const T*>(&raw);
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum[i] = fmaf(weight, to_float(values[i]), sum[i]);
  }
  static __device__ void add(float (&sum)[kVec], const Raw& raw) {
    const T* values = reinterpret_cast<const T*>(&raw);
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum[i] += to_float(values[i]);
  }
};

// Puts sums begin .. end - 1 of kVec into y, which is where sum 0 belongs.
template <class Y, int kVec>
__device__ void store(Y* y, const float (&sum)[kVec], int begin, int end, bool accumulate) {
#pragma unroll
  for (int i = 0; i < kVec; ++i)
    if (i >= begin && i < end) y[i] = Y(accumulate ? to_float(y[i]) + sum[i] : sum[i]);
}

// Does the same where y stands at a multiple of 16 bytes.
template <int kVec>
__device__ void store_vectors(float* y, const float (&sum)[kVec], int begin, int end,
                              bool accumulate) {
#pragma unroll
  for (int i = 0; i < kVec; i += 4) {
    if (i < begin || i + 4 > end) {
      const float four[4] = {sum[i], sum[i + 1], sum[i + 2], sum[i + 3]};
      store(y + i, four, begin - i, end - i, accumulate);
      continue;
    }
    float4 value = make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]);
    auto* const at = reinterpret_cast<float4*>(y + i);
    if (accumulate) {
      const float4 before = __ldcs(at);
      value.x += before.x, value.y += before.y, value.z += before.z, value.w += before.w;
    }
    __stcs(at, value);
  }
}

// Puts `count` columns of a slice into a y that stands at any float: kVec of each of kLanes lanes.
// Each lane gives its last columns to the next one, so that the columns that it then has begin at a
// multiple of 16 bytes; the last lane also writes its own last ones. The whole warp calls this.
template <int kVec, int kLanes>
__device__ void store_shifted(float* y, const float (&sum)[kVec], int count, bool accumulate,
                              bool mine) {
  constexpr int kMost = 3;  // floats from y down to a multiple of 16 bytes
  const int lane = threadIdx.x % kLanes;
  const int shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(y) / sizeof(float) % 4);
  float wide[kMost + kVec], shifted[kVec];
#pragma unroll
  for (int i = 0; i < kMost; ++i) wide[i] = __shfl_up_sync(kAll, sum[kVec - kMost + i], 1, kLanes);
#pragma unroll
  for (int i = 0; i < kVec; ++i) wide[kMost + i] = sum[i];
#pragma unroll
  for (int i = kMost + kVec - 1; i >= 1; --i) wide[i] = (shift & 1) != 0 ? wide[i - 1] : wide[i];
#pragma unroll
  for (int i = 0; i < kVec; ++i)
    shifted[i] = (shift & 2) != 0 ? wide[kMost + i - 2] : wide[kMost + i];
  if (!mine) return;
  const int column = lane * kVec - shift;
  store_vectors(y + column, shifted, lane == 0 ? shift : 0, count - column, accumulate);
  if (lane == kLanes - 1)
    store(y + lane * kVec, sum, kVec - shift, count - lane * kVec, accumulate);
}

// Adds the rows that a lane has loaded at once.
template <bool kWeighted, class Load, int kVec, int kBatch>
__device__ void add_batch(float (&sum)[kVec], const typename Load::Raw (&loaded)[kBatch],
                          [[maybe_unused]] const float (&factor)[kBatch]) {
#pragma unroll
  for (int k = 0; k < kBatch; ++k) {
    if constexpr (kWeighted)
      Load::add(sum, loaded[k], factor[k]);
    else
      Load::add(sum, loaded[k]);
  }
}

// Puts the sums of a group where they belong. This lane has kVec columns of them if `mine`; lanes
// beyond the width have none. The whole warp calls this.
template <class Y, int kVec, int kLanes>
__device__ void put(const SpmmView& a, std::uint32_t target, bool mine, float (&sum)[kVec]) {
  const std::uint64_t slice = std::uint64_t{blockIdx.y} * (kLanes * kVec);
  const int column = threadIdx.x % kLanes * kVec;
  const int count = static_cast<int>(min(a.width - slice, std::uint64_t{kLanes * kVec}));
  const bool partial = (target & RowGroup::kPartial) != 0;
  const std::uint64_t number = target & ~RowGroup::kPartial;
  if (mine && partial) {
    float* const to = a.partial_sums + number * a.partial_stride + slice + column;
    if constexpr (kVec > 1)
      store_vectors(to, sum, 0, count - column, false);
    else
      store(to, sum, 0, count - column, false);
  }
  mine = mine && !partial;
  if (mine && a.row_scale != nullptr)
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum[i] *= a.row_scale[number];
  Y* const y = static_cast<Y*>(a.y) + (partial ? 0 : number) * a.y_stride + slice;
  if constexpr (std::is_same_v<Y, float> && kVec > 1) {
    if (!a.y_in_vectors)
      store_shifted<kVec, kLanes>(y, sum, count, a.accumulate, mine);
    else if (mine)
      store_vectors(y + column, sum, 0, count - column, a.accumulate);
  } else if (mine) {
    store(y + column, sum, 0, count - column, a.accumulate);
  }
}

// Blocks per SM that leave enough registers for the loads in flight.
template <int kVec, int kLanes, bool kWeighted>
constexpr int kBlocks = kWeighted || kLanes > 8 ? 4
                        : kVec > 4              ? 5
                                                : 6;

// One warp per group, and one row of blocks per slice of kLanes x kVec columns.
template <class X, class Y, int kVec, int kLanes, bool kWeighted>
__global__ void __launch_bounds__(kThreads, (kBlocks<kVec, kLanes, kWeighted>))
    spmm_kernel(const __grid_constant__ SpmmView a) {
  using Load = Piece<X, kVec>;
  constexpr int kNeighbours = kWarp / kLanes;  // that the warp reads at once
  constexpr int kSteps = kLanes;               // for one load of columns
  constexpr int kBatch = kSteps < kInFlight ? kSteps : kInFlight;
  // Measured on an H200: with these, 5% faster in wide slices of fp32, 10% slower elsewhere.
  constexpr bool kOrdered = std::is_same_v<X, float> && kVec > 1 && kLanes >= 8;
  using Stride = std::conditional_t<kOrdered, std::uint32_t, std::uint64_t>;

  const int lane = threadIdx.x % kWarp, neighbour = lane / kLanes;
  const std::uint32_t number = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (number >= a.group_count) return;
  const RowGroup group = a.groups[number];
  const std::uint64_t column = (std::uint64_t{blockIdx.y} * kLanes + lane % kLanes) * kVec;
  const bool inside =
      column < a.width;  // lanes beyond the width read the first columns, for nothing
  const X* const x = static_cast<const X*>(a.x) + (inside ? column : 0);
  const Slot* const columns = a.columns + group.begin;
  const float* const weights = kWeighted ? a.weights + group.begin : nullptr;

  float sum[kVec] = {};
  Slot next = lane < group.edges ? __ldcs(columns + lane) : 0;
  float next_weight = kWeighted && lane < group.edges ? __ldcs(weights + lane) : 0;
  for (std::uint32_t done = 0; done < group.edges; done += kWarp) {
    const Slot here = next;
    const float weight = next_weight;
    const std::uint32_t ahead = done + kWarp + lane;
    next = ahead < group.edges ? __ldcs(columns + ahead) : 0;
    if constexpr (kWeighted) next_weight = ahead < group.edges ? __ldcs(weights + ahead) : 0;

    const std::uint32_t left = group.edges - done;
    const auto batch = [&](int step, auto readable) {
      typename Load::Raw loaded[kBatch];
      [[maybe_unused]] float factor[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int edge = (step + k) * kNeighbours + neighbour;
        const Slot slot = __shfl_sync(kAll, here, edge);
        if constexpr (kWeighted) factor[k] = __shfl_sync(kAll, weight, edge);
        loaded[k] = typename Load::Raw{};
        if (readable(edge))
          loaded[k] = Load::template load<kOrdered>(x + std::uint64_t{slot} *
                                                            static_cast<Stride>(a.x_stride));
      }
      add_batch<kWeighted, Load>(sum, loaded, factor);
    };
    if (left >= kWarp) {
#pragma unroll
      for (int step = 0; step < kSteps; step += kBatch) batch(step, [](int) { return true; });
    } else {
      for (int step = 0; step * kNeighbours < left && step < kSteps; step += kBatch)
        batch(step, [&](int edge) { return edge < left; });
    }
  }
#pragma unroll
  for (int distance = kLanes; distance < kWarp; distance *= 2)
#pragma unroll
    for (int i = 0; i < kVec; ++i) sum[i] += __shfl_xor_sync(kAll, sum[i], distance);

  put<Y, kVec, kLanes>(a, group.target, neighbour == 0, sum);
}

// For short groups: kLanes lanes work on a group and several groups share a warp, so that the
// latencies of many groups' records, columns, rows and y overlap. Needs no sum over lanes.
template <class X, class Y, int kVec, int kLanes, bool kWeighted>
__global__ void __launch_bounds__(kThreads, (kBlocks<kVec, kLanes, kWeighted>))
    short_groups_kernel(const __grid_constant__ SpmmView a) {
  using Load = Piece<X, kVec>;
  constexpr int kGroups = kWarp / kLanes;  // of a warp
  constexpr int kBatch = kLanes < kInFlight ? kLanes : kInFlight;

  const int lane = threadIdx.x % kLanes, first_lane = threadIdx.x % kWarp - lane;
  const std::uint32_t warp = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
  const std::uint32_t number = warp * kGroups + first_lane / kLanes;
  const bool there = number < a.group_count;
  const RowGroup group = a.groups[there ? number : a.group_count - 1];
  const std::uint32_t edges = there ? group.edges : 0, most = __reduce_max_sync(kAll, edges);
  const std::uint64_t column = (std::uint64_t{blockIdx.y} * kLanes + lane) * kVec;
  const bool inside = column < a.width;
  const X* const x = static_cast<const X*>(a.x) + (inside ? column : 0);
  const Slot* const columns = a.columns + group.begin;
  const float* const weights = kWeighted ? a.weights + group.begin : nullptr;

  float sum[kVec] = {};
  Slot next = lane < edges ? __ldcs(columns + lane) : 0;
  float next_weight = kWeighted && lane < edges ? __ldcs(weights + lane) : 0;
  for (std::uint32_t done = 0; done < most; done += kLanes) {
    const Slot here = next;
    const float weight = next_weight;
    const std::uint32_t ahead = done + kLanes + lane;
    next = ahead < edges ? __ldcs(columns + ahead) : 0;
    if constexpr (kWeighted) next_weight = ahead < edges ? __ldcs(weights + ahead) : 0;
#pragma unroll
    for (int step = 0; step < kLanes; step += kBatch) {
      typename Load::Raw loaded[kBatch];
      [[maybe_unused]] float factor[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const Slot slot = __shfl_sync(kAll, here, first_lane + step + k);
        if constexpr (kWeighted) factor[k] = __shfl_sync(kAll, weight, first_lane + step + k);
        loaded[k] = typename Load::Raw{};
        if (done + step + k < edges)
          loaded[k] = Load::template load<false>(x + std::uint64_t{slot} * a.x_stride);
      }
      add_batch<kWeighted, Load>(sum, loaded, factor);
    }
  }
  put<Y, kVec, kLanes>(a, group.target, there, sum);
}

// Adds partial sums in order: one cut row per threadIdx.y, one column per threadIdx.x.
template <class Y>
__global__ void add_partial_sums(const CutRow* rows, std::uint32_t count,
                                 const __grid_constant__ SpmmView a) {
  const std::uint32_t number = blockIdx.x * blockDim.y + threadIdx.y;
  if (number >= count) return;
  const CutRow row = rows[number];
  Y* const y = static_cast<Y*>(a.y) + row.row * a.y_stride;
  for (std::uint64_t column = threadIdx.x; column < a.width; column += blockDim.x) {
    const float* const first =
        a.partial_sums + std::uint64_t{row.first} * a.partial_stride + column;
    float sum[1] = {0};
#pragma unroll 8
    for (std::uint32_t k = 0; k < row.count; ++k) sum[0] += first[k * a.partial_stride];
    if (a.row_scale != nullptr) sum[0] *= a.row_scale[row.row];
    store(y + column, sum, 0, 1, a.accumulate);
  }
}

struct Launch {
  const DeviceSpmmArgs& args;
  SpmmView view;
  cudaStream_t stream;

  template <class X, class Y, int kVec, int kLanes>
  void run() const {
    const auto slices = static_cast<unsigned>((view.width + kLanes * kVec - 1) / (kLanes * kVec));
    if (view.weights != nullptr)
      sum_groups<X, Y, kVec, kLanes, true>(slices);
    else
      sum_groups<X, Y, kVec, kLanes, false>(slices);
    if (const std::uint32_t cut = args.groups->cut_size(); cut > 0) {
      const auto columns = static_cast<unsigned>(
          std::clamp<std::uint64_t>(std::bit_ceil(view.width), 8, kAddThreads));
      const dim3 block(columns, kAddThreads / columns);
      add_partial_sums<Y>
          <<<(cut + block.y - 1) / block.y, block, 0, stream>>>(args.groups->cut_rows(), cut, view);
    }
  }

  template <class X, class Y, int kVec, int kLanes, bool kWeighted>
  void sum_groups(unsigned slices) const {
    const auto blocks = [](std::uint32_t warps) {
      return (warps + kThreads / kWarp - 1) / (kThreads / kWarp);
    };
    if constexpr (kVec > 1 && kLanes >= 4 && kLanes <= 16) {
      if (!args.fixed_order &&
          args.groups->edges() <= args.groups->size() * EdgeOffset{machine().short_group}) {
        constexpr int kGroups = kWarp / kLanes;
        const dim3 grid(blocks((view.group_count + kGroups - 1) / kGroups), slices);
        short_groups_kernel<X, Y, kVec, kLanes, kWeighted><<<grid, kThreads, 0, stream>>>(view);
        return;
      }
    }
    const dim3 grid(blocks(view.group_count), slices);
    spmm_kernel<X, Y, kVec, kLanes, kWeighted><<<grid, kThreads, 0, stream>>>(view);
  }
};

// Tells whether rows of x can be read 16 bytes at a time: padding up to 16 bytes is read too.
template <class X>
bool reads_whole_vectors(const DeviceSpmmArgs& args) {
  constexpr std::uint64_t kVec = 16 / sizeof(X);
  return reinterpret_cast<std::uintptr_t>(args.x.data) % 16 == 0 && args.x.stride % kVec == 0 &&
         (args.width + kVec - 1) / kVec * kVec <= args.x.stride;
}

template <class X, class Y>
void launch(const DeviceSpmmArgs& args, const SpmmView& view, std::uint32_t slice_bytes,
            cudaStream_t stream) {
  constexpr int kVec = 16 / sizeof(X);
  const bool vectors = reads_whole_vectors<X>(args);
  const std::uint64_t pieces = vectors ? (args.width + kVec - 1) / kVec : args.width;
  const std::uint64_t most = vectors ? slice_bytes / 16 : kWarp;
  const Launch run{args, view, stream};
  for_lanes<1>(std::min(pieces, most), [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    vectors ? run.template run<X, Y, kVec, kLanes>() : run.template run<X, Y, 1, kLanes>();
  });
}

std::uint32_t slice_bytes(const DeviceSpmmArgs& args) {
  constexpr std::uint32_t kFixedSlice = 256;
  if (args.slice_bytes != 0) return args.slice_bytes;
  if (args.fixed_order) return kFixedSlice;
  int device = 0, l2_bytes = 0;
  check_cuda(cudaGetDevice(&device), "the GPU");
  check_cuda(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "the GPU");
  return slice_bytes_for(args.x_rows, static_cast<std::uint64_t>(l2_bytes));
}

}  // namespace

std::uint32_t slice_bytes_for(std::uint64_t x_rows, std::uint64_t l2_bytes) {
  constexpr std::uint32_t kLine = 128;
  return x_rows <= l2_bytes / 2 / kLine ? kLine : 2 * kLine;
}

std::uint64_t spmm_scratch(const RowGroups& groups, std::uint64_t width) {
  return groups.partial_sums() * row_stride(width);
}

void spmm(const DeviceSpmmArgs& args, cudaStream_t stream) {
  const DType x = args.x.type, y = args.y.type;
  require<UsageError>(y == DType::f32 || y == x, "x of {} cannot be summed into y of {}",
                      to_string(x), to_string(y));
  require<UsageError>(args.groups->cut_size() == 0 || args.partial_sums != nullptr,
                      "cut rows need memory for partial sums");
  require<UsageError>(args.x.stride >> 32 == 0, "rows of x are {} elements apart", args.x.stride);
  if (args.groups->size() == 0 || args.width == 0) return;
  const SpmmView view{.groups = args.groups->groups(),
                      .group_count = args.groups->size(),
                      .columns = args.columns,
                      .weights = args.weights,
                      .x = args.x.data,
                      .x_stride = args.x.stride,
                      .width = args.width,
                      .y = args.y.data,
                      .y_stride = args.y.stride,
                      .row_scale = args.row_scale,
                      .accumulate = args.accumulate,
                      .y_in_vectors = y == DType::f32 && args.y.stride % 4 == 0 &&
                                      reinterpret_cast<std::uintptr_t>(args.y.data) % 16 == 0,
                      .partial_sums = args.partial_sums,
                      .partial_stride = row_stride(args.width)};
  const std::uint32_t slice = slice_bytes(args);
  if (x == DType::f32)
    launch<float, float>(args, view, slice, stream);
  else if (x == DType::bf16 && y == x)
    launch<__nv_bfloat16, __nv_bfloat16>(args, view, slice, stream);
  else if (x == DType::bf16)
    launch<__nv_bfloat16, float>(args, view, slice, stream);
  else if (y == x)
    launch<__half, __half>(args, view, slice, stream);
  else
    launch<__half, float>(args, view, slice, stream);
  check_cuda(cudaGetLastError(), "spmm");
}

}  // namespace plait
