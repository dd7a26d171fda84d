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
// To compare with that, remote rows may be read by single threads or by whole blocks, which then
// wait for each other, and local and remote groups may be dealt to different warps: first the warps
// with local ones, then those with remote ones. Groups of more edges than a warp has lanes are
// taken in chunks. None of this is in the kernel of the standard settings (Way).
//
// The width is cut into slices of at most 128 columns; in narrow ones the warp's lanes are split
// over several neighbours, as in spmm.cu. get_warp.cuh has the work of one warp, get_turns.cuh its
// turns.
//
// Remote rows may also be read by NVSHMEM's device functions, as MGG does. These kernels are the
// same templates in a module of its own (get_module.cuh).
#include <algorithm>

#include "plait/base/error.h"
#include "plait/base/row_stride.h"
#include "plait/kernels/cuda/get.cuh"
#include "plait/kernels/cuda/get_module.cuh"
#include "plait/kernels/cuda/get_occupancy.h"
#include "plait/kernels/cuda/get_turns.cuh"

namespace plait {
namespace {

using namespace get_detail;

constexpr int kMostWarps = GetTuning::kMostWarps;  // per block
constexpr std::uint64_t kMostSlices = 65535;       // rows of blocks in a grid
static_assert(kMostWarps * kWarp * 2 * kGetRegisters <= 65536);

// Two blocks of kMostWarps warps fit at kGetRegisters registers.
template <int kVec, int kLanes, bool kWeighted, Way kWay>
__global__ void __launch_bounds__(kMostWarps* kWarp, 2)
    get_kernel(const __grid_constant__ GetView a) {
  extern __shared__ float4 shared[];
  take_turns<GetWarp<kVec, kLanes, kWeighted, kWay>>(a, shared);
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

GpuLimits limits_here() {
  const auto attribute = [](cudaDeviceAttr which) {
    int device = 0, value = 0;
    check_cuda(cudaGetDevice(&device), "get");
    check_cuda(cudaDeviceGetAttribute(&value, which, device), "get");
    return static_cast<std::uint64_t>(value);
  };
  return {.shared_of_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
          .shared = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor),
          .shared_kept = attribute(cudaDevAttrReservedSharedMemoryPerBlock),
          .registers = attribute(cudaDevAttrMaxRegistersPerMultiprocessor),
          .warps = attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / kWarp,
          .blocks = attribute(cudaDevAttrMaxBlocksPerMultiprocessor)};
}

// Padding up to the next 16 bytes is read too.
bool reads_whole_vectors(const DeviceGetArgs& args) {
  return on_16_bytes(args.x, args.stride) && (args.width + 3) / 4 * 4 <= args.stride &&
         std::ranges::all_of(args.blocks, [&](const PeerBlock& b) { return on_16_bytes(b.x); });
}

// Returns the number of pieces of a row, of kVec floats, that have a lane each, if there are so
// many lanes.
template <int kVec>
std::uint64_t pieces_of(const DeviceGetArgs& args) {
  constexpr std::uint64_t kLeast = GetTuning::kLeastLanes;
  return args.tuning.dw ? *args.tuning.dw : std::max((args.width + kVec - 1) / kVec, kLeast);
}

// Returns the lanes that work on a row where templates have kLanes: NVSHMEM's kernels differ.
template <int kVec, int kLanes>
int lanes_of(const DeviceGetArgs& args) {
  return args.module != nullptr && kVec == 1 ? int{GetTuning::kLeastLanes} : kLanes;
}

struct Launch {
  const DeviceGetArgs& args;
  std::uint32_t most_neighbours;  // of a group
  GetView view;
  std::uint64_t blocks;  // for each slice of the width
  cudaStream_t stream;
  GetOccupancy* asked = nullptr;  // takes the kernel's occupancy, and nothing is launched

  void run() const {
    if (reads_whole_vectors(args))
      with_lanes<4>();
    else
      with_lanes<1>();
    if (args.partial_sums == nullptr || asked != nullptr) return;
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

  template <int kVec>
  void with_lanes() const {
    for_lanes<1>(pieces_of<kVec>(args),
                 [&](auto lanes) { with_way<kVec, decltype(lanes)::value>(); });
  }

  template <int kVec, int kLanes>
  void with_way() const {
    const GetTuning& tuning = args.tuning;
    const bool is_long = most_neighbours > kWarp;
    if (args.module != nullptr) return start_of_module(kVec, lanes_of<kVec, kLanes>(args));
    if constexpr (kLanes >= GetTuning::kLeastLanes) {
      if (tuning.read_by == ReadBy::thread) return with_weights<kVec, kLanes, Way::by_thread>();
      if (tuning.read_by == ReadBy::block) return with_weights<kVec, kLanes, Way::by_block>();
    }
    if (tuning.asynchronous)
      is_long ? with_weights<kVec, kLanes, Way::fetch_long>()
              : with_weights<kVec, kLanes, Way::fetch>();
    else
      is_long ? with_weights<kVec, kLanes, Way::load_long>()
              : with_weights<kVec, kLanes, Way::load>();
  }

  template <int kVec, int kLanes, Way kWay>
  void with_weights() const {
    args.weights != nullptr ? start<kVec, kLanes, true, kWay>()
                            : start<kVec, kLanes, false, kWay>();
  }

  template <int kVec, int kLanes, bool kWeighted, Way kWay>
  void start() const {
    void* arguments[] = {const_cast<GetView*>(&view)};
    start(reinterpret_cast<const void*>(get_kernel<kVec, kLanes, kWeighted, kWay>), kVec, kLanes,
          arguments);
  }
  void start_of_module(int vec, int lanes) const {
    void* arguments[] = {const_cast<GetView*>(&view), &lanes};
    start(args.module->kernel(args.tuning.read_by, vec), vec, lanes, arguments);
  }

  void start(const void* kernel, int vec, int lanes, void** arguments) const {
    const GetBlock block = get_block(args.tuning, vec * sizeof(float));
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(block.shared)),
               "shared memory of a block");
    if (asked != nullptr) return ask(kernel, block);
    const std::uint64_t columns = static_cast<std::uint64_t>(lanes) * vec;
    const std::uint64_t slices = (args.width + columns - 1) / columns;
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(slices));
    check_cuda(cudaLaunchKernel(kernel, grid, dim3(args.tuning.wpb * kWarp), arguments,
                                block.shared, stream),
               "get");
  }

  void ask(const void* kernel, const GetBlock& block) const {
    int at_once = 0;
    cudaFuncAttributes attributes{};
    check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                   &at_once, kernel, static_cast<int>(block.warps * kWarp), block.shared),
               "the occupancy of get");
    check_cuda(cudaFuncGetAttributes(&attributes, kernel), "the registers of get");
    *asked = {.blocks = static_cast<std::uint64_t>(at_once),
              .warps = block.warps,
              .most_warps = limits_here().warps,
              .registers = static_cast<std::uint64_t>(attributes.numRegs)};
  }
};

GetView view_of(const DeviceGetArgs& args, const GetGrid& grid) {
  const DeviceArray<RowGroup>&local = args.groups->local(), &remote = args.groups->remote();
  constexpr std::uint64_t one = 1;
  GetView view{
      .local = {local.data(), local.size(), 0, std::max(grid.local_warps, one)},
      .remote = {remote.data(), remote.size(), grid.first_remote, std::max(grid.remote_warps, one)},
      .warps = grid.warps,
      .ahead = args.tuning.asynchronous,
      .row_of_sum = args.groups->row_of_sum(),
      .slots = args.slots,
      .weights = args.weights,
      .x = args.x,
      .stride = args.stride,
      .width = args.width,
      .blocks = static_cast<std::uint32_t>(args.blocks.size()),
      .block_begin = {},
      .block_x = {},
      .block_rank = {},
      .y = args.y,
      .y_stride = args.y_stride,
      .row_scale = args.row_scale,
      .accumulate = args.accumulate,
      .partial_sums = args.partial_sums,
      .partial_stride = row_stride(args.width)};
  for (std::size_t b = 0; b < args.blocks.size(); ++b) {
    view.block_begin[b] = args.blocks[b].begin;
    view.block_x[b] = args.blocks[b].x;
    view.block_rank[b] = args.blocks[b].rank;
  }
  return view;
}

}  // namespace

std::uint64_t get_scratch(const GetGroups& groups, std::uint64_t width) {
  return groups.partial_sums() * row_stride(width);
}

void require_get(const DeviceGetArgs& args) {
  require_in_range(args.tuning);
  require<UsageError>(args.blocks.size() <= DeviceGetArgs::kMostBlocks,
                      "{} other ranks are more than {}", args.blocks.size(),
                      DeviceGetArgs::kMostBlocks);
  require<UsageError>(args.groups->remote().size() == 0 || !args.blocks.empty(),
                      "remote edges need blocks of remote rows");
  require<UsageError>((args.module != nullptr) == (args.tuning.read_with == ReadWith::nvshmem),
                      "reads by NVSHMEM's device functions, and no others, need their kernels");
  const auto with_pieces = [&]<int kVec>(std::integral_constant<int, kVec>) {
    require_runs(get_block(args.tuning, kVec * sizeof(float)), limits_here());
    for_lanes<1>(pieces_of<kVec>(args), [&](auto constant) {
      constexpr int kLanes = decltype(constant)::value;
      const auto lanes = static_cast<std::uint64_t>(lanes_of<kVec, kLanes>(args));
      require<UsageError>(args.width <= kMostSlices * kVec * lanes,
                          "rows of {} floats are too wide for strategy get with dw = {}",
                          args.width, lanes);
    });
  };
  if (reads_whole_vectors(args))
    with_pieces(std::integral_constant<int, 4>{});
  else
    with_pieces(std::integral_constant<int, 1>{});
}

void spmm_get(const DeviceGetArgs& args, cudaStream_t stream) {
  require_get(args);
  if (args.groups->rows() == 0 || args.width == 0) return;
  const bool atomics = args.partial_sums == nullptr && args.groups->partial_sums() > 0;
  if (atomics && !args.accumulate)
    check_cuda(cudaMemset2DAsync(args.y, args.y_stride * sizeof(float), 0,
                                 args.width * sizeof(float), args.groups->rows(), stream),
               "get");
  const GetGrid grid =
      get_grid(args.tuning, args.groups->local().size(), args.groups->remote().size());
  Launch{args, args.groups->most_neighbours(), view_of(args, grid), grid.blocks, stream}.run();
  check_cuda(cudaGetLastError(), "get");
}

GetOccupancy get_occupancy(const GetTuning& tuning, std::uint64_t width) {
  require_in_range(tuning);
  require<UsageError>(tuning.read_with == ReadWith::addresses,
                      "the occupancy is asked of kernels that read at addresses");
  const DeviceGetArgs args{.stride = row_stride(width), .width = width, .tuning = tuning};
  GetOccupancy found;
  Launch{args, std::max(tuning.ps, tuning.remote()), {}, 0, nullptr, &found}.run();
  return found;
}

}  // namespace plait
