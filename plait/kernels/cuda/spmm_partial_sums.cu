// Most cut rows have few groups: threads add these one after the other, several rows per block. A
// hub has up to 4,096 groups (row_cut.h), or lies in any number of tiles: the threads of one block
// add some of its parts each, and a tree adds the threads' sums. One thread waits for memory again
// and again, so all threads of the block take part, however few columns there are.
//
// Both kernels are launched before the sums of groups have ended (programmatic dependent launch),
// so that a small graph does not wait for a launch. They wait for the sums themselves.
#include <algorithm>
#include <bit>

#include "plait/base/cuda/warp.cuh"
#include "plait/kernels/cuda/spmm_partial_sums.cuh"

namespace plait {
namespace {

constexpr int kFewThreads = 128, kFewLeast = 4;
constexpr int kHubThreads = 512;

template <class Y>
__device__ void finish(const SpmmView& a, std::uint32_t row, std::uint64_t column, float value) {
  const float sum[1] = {a.row_scale != nullptr ? value * a.row_scale[row] : value};
  store(static_cast<Y*>(a.y) + row * a.y_stride + column, sum, 0, 1, a.accumulate);
}

// One row per threadIdx.y, one column per threadIdx.x.
template <class Y>
__global__ void add_few(const CutRow* rows, std::uint32_t count,
                        const __grid_constant__ SpmmView a) {
  wait_for_kernel_before();
  const std::uint32_t number = blockIdx.x * blockDim.y + threadIdx.y;
  if (number >= count) return;
  const CutRow row = rows[number];
  if (row.count == 0) return;  // no row (RowGroups::take)
  for (std::uint64_t column = threadIdx.x; column < a.width; column += blockDim.x) {
    const float* const first =
        a.partial_sums + std::uint64_t{row.first} * a.partial_stride + column;
    float sum = 0;
#pragma unroll 8
    for (std::uint32_t k = 0; k < row.count; ++k) sum += first[k * a.partial_stride];
    finish<Y>(a, row.row, column, sum);
  }
}

// One block per row (x) and kColumns columns (y), with one column per threadIdx.x.
template <class Y, int kColumns>
__global__ void add_hubs(const CutRow* rows, const __grid_constant__ SpmmView a) {
  wait_for_kernel_before();
  constexpr int kLines = kHubThreads / kColumns;
  __shared__ float sums[kLines][kColumns];
  const CutRow row = rows[blockIdx.x];
  if (row.count == 0) return;  // no row (RowGroups::take)
  const std::uint64_t column = std::uint64_t{blockIdx.y} * kColumns + threadIdx.x;
  const bool inside = column < a.width;
  const float* const first =
      a.partial_sums + std::uint64_t{row.first} * a.partial_stride + (inside ? column : 0);
  float sum = 0;
#pragma unroll 8
  for (std::uint32_t k = threadIdx.y; k < row.count; k += kLines)
    sum += first[k * a.partial_stride];
  sums[threadIdx.y][threadIdx.x] = sum;
#pragma unroll
  for (int half = kLines / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.y) < half)
      sums[threadIdx.y][threadIdx.x] += sums[threadIdx.y + half][threadIdx.x];
  }
  if (threadIdx.y == 0 && inside) finish<Y>(a, row.row, column, sums[0][threadIdx.x]);
}

}  // namespace

void add_partial_sums(const SpmmView& view, const CutRows& cut, DType y, cudaStream_t stream) {
  with_type(y, [&]<class Y>(Y) {
    if (const std::uint32_t few = cut.count - cut.hubs; few > 0) {
      const auto columns = static_cast<unsigned>(
          std::clamp<std::uint64_t>(std::bit_ceil(view.width), kFewLeast, kFewThreads));
      const dim3 block(columns, kFewThreads / columns);
      launch_early(add_few<Y>, (few + block.y - 1) / block.y, block, stream, cut.rows, few, view);
    }
    if (cut.hubs > 0) {
      const auto columns = std::min<std::uint64_t>(view.width, kHubColumns);
      for_lanes<1>(columns, [&](auto constant) {
        constexpr int kColumns = decltype(constant)::value;
        const dim3 grid(cut.hubs, static_cast<unsigned>((view.width + kColumns - 1) / kColumns));
        launch_early(add_hubs<Y, kColumns>, grid, dim3(kColumns, kHubThreads / kColumns), stream,
                     cut.rows + cut.count - cut.hubs, view);
      });
    }
  });
}

}  // namespace plait
