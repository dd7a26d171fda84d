// A small matrix is summed in a few microseconds. If its rows were cut into groups, a second kernel
// would add their sums, and its launch would take as long again; if one warp worked on each row, a
// dense row would take long, and most of the GPU would have no work. So the warps of a block share
// rows, and add their sums in shared memory.
#include "plait/kernels/cuda/spmm_edges.cuh"
#include "plait/kernels/cuda/spmm_split.cuh"
#include "plait/machine/machine.h"

namespace plait {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kSplit = 4;  // warps that share a row
constexpr int kRows = kWarps / kSplit;

template <class X, class Y, int kVec, int kLanes, bool kWeighted>
__global__ void __launch_bounds__(kThreads) split_rows_kernel(const __grid_constant__ SpmmView a) {
  __shared__ float sums[kWarps][kLanes * kVec];
  const std::uint32_t warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, part = warp % kSplit;
  const std::uint32_t number = blockIdx.x * kRows + warp / kSplit;
  const bool there = number < a.group_count;
  const RowGroup group = a.groups[there ? number : 0];

  constexpr std::uint32_t kStep = kSplit * kWarp;
  const std::uint32_t most = (group.edges + kStep - 1) / kStep * kWarp;  // edges of one warp
  const std::uint32_t begin = min(part * most, group.edges);
  const std::uint32_t edges = there ? min(most, group.edges - begin) : 0;
  float sum[kVec] = {};
  sum_edges<X, kVec, kLanes, kWeighted>(a, group.begin + begin, edges, sum);
  const bool mine = lane < kLanes;
  if (mine && part > 0)
#pragma unroll
    for (int i = 0; i < kVec; ++i) sums[warp][lane * kVec + i] = sum[i];
  __syncthreads();
  if (part > 0) return;
  if (mine)
    for (int other = 1; other < kSplit; ++other)
#pragma unroll
      for (int i = 0; i < kVec; ++i) sum[i] += sums[warp + other][lane * kVec + i];
  put<Y, kVec, kLanes>(a, group.target, there && mine, sum);
}

template <class X, class Y, int kLanes>
void launch(const SpmmView& view, cudaStream_t stream) {
  constexpr int kVec = 16 / sizeof(X);
  const dim3 grid((view.group_count + kRows - 1) / kRows,
                  static_cast<unsigned>((view.width + kLanes * kVec - 1) / (kLanes * kVec)));
  if (view.weights != nullptr)
    split_rows_kernel<X, Y, kVec, kLanes, true><<<grid, kThreads, 0, stream>>>(view);
  else
    split_rows_kernel<X, Y, kVec, kLanes, false><<<grid, kThreads, 0, stream>>>(view);
}

}  // namespace

bool split_pays(const SpmmView& view, int lanes, std::uint64_t vec) {
  const std::uint64_t slice = static_cast<std::uint64_t>(lanes) * vec;
  const std::uint64_t slices = (view.width + slice - 1) / slice;
  return lanes > 1 && view.group_count * slices * kSplit <= machine().warps_at_once;
}

void spmm_by_split_rows(const SpmmView& view, int lanes, DType x, DType y, cudaStream_t stream) {
  with_types(x, y, [&]<class X, class Y>(X, Y) {
    for_lanes<2>(static_cast<std::uint64_t>(lanes),
                 [&](auto constant) { launch<X, Y, decltype(constant)::value>(view, stream); });
  });
  check_cuda(cudaGetLastError(), "spmm");
}

}  // namespace plait
