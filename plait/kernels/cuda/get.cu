// Rows of other GPUs take longer to arrive than own rows, over a link of about a tenth of the
// memory's bandwidth. MGG's answer is that every warp has both kinds of work:
//
//   - Local and remote groups are dealt out evenly: warp w of W takes the w-th share of either
//     list, at most `dist` of each, so that no block is all remote (section 5.1).
//   - A warp takes its groups in turns, a local and a remote one. Blocking, it waits for remote
//     rows as for any load, and other warps work meanwhile. Asynchronous, remote rows are copied
//     into shared memory (cp.async), one batch ahead of the sum: the first rows of a remote
//     group travel while the local group before it is summed (section 5.2).
//   - Shared memory holds two batches of rows per warp: one arrives, one is summed. Unlike in MGG,
//     ids and sums are in registers: a lane holds one id of a group, and each lane turns its own
//     into an address (address translation, section 4.2), which the others get by shuffles. A lane
//     reads back only rows that it fetched itself, so that nobody waits for other lanes.
//
// The width is cut into slices of at most 128 columns; in narrow ones the warp's lanes are split
// over several neighbours, as in spmm.cu. get_warp.cuh has the work of one warp.
#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/row_stride.h"
#include "plait/kernels/cuda/get.cuh"
#include "plait/kernels/cuda/get_warp.cuh"

namespace plait {
namespace {

using namespace get_detail;

constexpr int kMostWarps = 16;   // per block
constexpr int kMostGroups = 16;  // of a kind, per warp

// Two blocks of kMostWarps warps fit at 64 registers.
template <int kVec, int kLanes, bool kWeighted, bool kAsynchronous>
__global__ void __launch_bounds__(kMostWarps* kWarp, 2)
    get_kernel(const __grid_constant__ GetView a) {
  extern __shared__ float4 shared[];
  const std::uint64_t number = blockIdx.x * std::uint64_t{blockDim.x / kWarp} + threadIdx.x / kWarp;
  if (number >= a.warps) return;
  const int lane = threadIdx.x % kWarp;
  const GetWarp<kVec, kLanes, kWeighted> warp(a, reinterpret_cast<Piece<kVec>*>(shared));
  const Share local(a.local, a.local_groups, number, a.warps, lane);
  const Share remote(a.remote, a.remote_groups, number, a.warps, lane);

  Edges next_local = warp.edges_of(local, 0), next_remote = warp.edges_of(remote, 0);
  int stage = 0;
  if constexpr (kAsynchronous)
    warp.fetch(next_remote.count, warp.remote_row(next_remote.slot), 0, stage);
  for (int k = 0; k < local.groups || k < remote.groups; ++k) {
    const Edges near = next_local, far = next_remote;
    next_local = warp.edges_of(local, k + 1), next_remote = warp.edges_of(remote, k + 1);
    if (k < local.groups) {
      Piece<kVec> sum{};
      warp.sum_rows(near, warp.local_row(near.slot), sum);
      warp.put(local, k, sum);
    }
    if (k < remote.groups) {
      Piece<kVec> sum{};
      if constexpr (kAsynchronous)
        warp.sum_fetched(far, next_remote, stage, sum);
      else
        warp.sum_rows(far, warp.remote_row(far.slot), sum);
      warp.put(remote, k, sum);
    }
  }
}

constexpr int kParts = 16;  // of a long row, or rows of a block

// Adds partial sums in order: one warp per row, or one block per long row, in kParts parts.
template <bool kLong>
__global__ void __launch_bounds__(kParts* kWarp)
    add_partial_sums(const CutRow* rows, std::uint32_t count, const __grid_constant__ GetView a) {
  __shared__ float parts[kLong ? kParts : 1][kWarp];
  const std::uint32_t number = kLong ? blockIdx.x : blockIdx.x * kParts + threadIdx.y;
  if (number >= count) return;
  const CutRow row = rows[number];
  const std::uint32_t share = kLong ? (row.count + kParts - 1) / kParts : row.count;
  const std::uint32_t begin = kLong ? min(threadIdx.y * share, row.count) : 0;
  const std::uint32_t end = min(begin + share, row.count);
  for (std::uint64_t first = 0; first < a.width; first += kWarp) {
    const std::uint64_t column = first + threadIdx.x;
    const bool inside = column < a.width;
    float sum = 0;
    if (inside)
#pragma unroll 8
      for (std::uint32_t k = begin; k < end; ++k)
        sum += __ldcs(a.partial_sums + (std::uint64_t{row.first} + k) * a.partial_stride + column);
    if constexpr (kLong) {
      parts[threadIdx.y][threadIdx.x] = sum;
      __syncthreads();
      sum = 0;
      for (int part = 0; part < kParts; ++part) sum += parts[part][threadIdx.x];
      __syncthreads();
    }
    if (!inside || (kLong && threadIdx.y > 0)) continue;
    if (a.row_scale != nullptr) sum *= a.row_scale[row.row];
    Piece<1>{sum}.store(a.y + row.row * a.y_stride + column, 1, a.accumulate);
  }
}

struct Launch {
  const DeviceGetArgs& args;
  GetView view;
  cudaStream_t stream;

  void run() const {
    if (reads_whole_vectors())
      with_lanes<4>();
    else
      with_lanes<1>();
    if (args.partial_sums == nullptr) return;
    const dim3 threads(kWarp, kParts);
    const auto few = static_cast<std::uint32_t>(args.groups->short_rows().size());
    const auto many = static_cast<std::uint32_t>(args.groups->long_rows().size());
    if (few > 0)
      add_partial_sums<false><<<(few + kParts - 1) / kParts, threads, 0, stream>>>(
          args.groups->short_rows().data(), few, view);
    if (many > 0)
      add_partial_sums<true>
          <<<many, threads, 0, stream>>>(args.groups->long_rows().data(), many, view);
  }

  // Padding up to the next 16 bytes is read too.
  bool reads_whole_vectors() const {
    return on_16_bytes(args.x, args.stride) && (args.width + 3) / 4 * 4 <= args.stride &&
           std::ranges::all_of(args.blocks, [&](const PeerBlock& b) { return on_16_bytes(b.x); });
  }

  template <int kVec>
  void with_lanes() const {
    for_lanes<4>((args.width + kVec - 1) / kVec,
                 [&](auto lanes) { with_mode<kVec, decltype(lanes)::value>(); });
  }

  template <int kVec, int kLanes>
  void with_mode() const {
    if (args.weights != nullptr)
      args.asynchronous ? start<kVec, kLanes, true, true>() : start<kVec, kLanes, true, false>();
    else
      args.asynchronous ? start<kVec, kLanes, false, true>() : start<kVec, kLanes, false, false>();
  }

  template <int kVec, int kLanes, bool kWeighted, bool kAsynchronous>
  void start() const {
    const auto kernel = get_kernel<kVec, kLanes, kWeighted, kAsynchronous>;
    const int shared =
        kAsynchronous ? static_cast<int>(args.wpb * kStages * kBatch * kWarp * sizeof(Piece<kVec>))
                      : 0;
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
               "shared memory of a block");
    const dim3 grid(static_cast<unsigned>((view.warps + args.wpb - 1) / args.wpb),
                    static_cast<unsigned>((args.width + kLanes * kVec - 1) / (kLanes * kVec)));
    kernel<<<grid, args.wpb * kWarp, static_cast<std::size_t>(shared), stream>>>(view);
    check_cuda(cudaGetLastError(), "get");
  }
};

GetView view_of(const DeviceGetArgs& args) {
  const std::uint64_t local = args.groups->local().size(), remote = args.groups->remote().size();
  GetView view{.local = args.groups->local().data(),
               .remote = args.groups->remote().data(),
               .local_groups = local,
               .remote_groups = remote,
               .warps = (std::max(local, remote) + args.dist - 1) / args.dist,
               .row_of_sum = args.groups->row_of_sum(),
               .slots = args.slots,
               .weights = args.weights,
               .x = args.x,
               .stride = args.stride,
               .width = args.width,
               .blocks = static_cast<std::uint32_t>(args.blocks.size()),
               .block_begin = {},
               .block_x = {},
               .y = args.y,
               .y_stride = args.y_stride,
               .row_scale = args.row_scale,
               .accumulate = args.accumulate,
               .partial_sums = args.partial_sums,
               .partial_stride = row_stride(args.width)};
  for (std::size_t b = 0; b < args.blocks.size(); ++b) {
    view.block_begin[b] = args.blocks[b].begin;
    view.block_x[b] = args.blocks[b].x;
  }
  return view;
}

}  // namespace

std::uint64_t get_scratch(const GetGroups& groups, std::uint64_t width) {
  return groups.partial_sums() * row_stride(width);
}

void spmm_get(const DeviceGetArgs& args, cudaStream_t stream) {
  require<UsageError>(args.dist >= 1 && args.dist <= kMostGroups,
                      "dist is {}, which is not 1 to {}", args.dist, kMostGroups);
  require<UsageError>(args.wpb >= 1 && args.wpb <= kMostWarps, "wpb is {}, which is not 1 to {}",
                      args.wpb, kMostWarps);
  require<UsageError>(args.blocks.size() <= DeviceGetArgs::kMostBlocks,
                      "{} other ranks are more than {}", args.blocks.size(),
                      DeviceGetArgs::kMostBlocks);
  require<UsageError>(args.groups->remote().size() == 0 || !args.blocks.empty(),
                      "remote edges need blocks of remote rows");
  if (args.groups->rows() == 0 || args.width == 0) return;
  const bool atomics = args.partial_sums == nullptr && args.groups->partial_sums() > 0;
  if (atomics && !args.accumulate)
    check_cuda(cudaMemset2DAsync(args.y, args.y_stride * sizeof(float), 0,
                                 args.width * sizeof(float), args.groups->rows(), stream),
               "get");
  Launch{args, view_of(args), stream}.run();
  check_cuda(cudaGetLastError(), "get");
}

}  // namespace plait
