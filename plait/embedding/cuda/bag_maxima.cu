// A group of lanes works on a group of edges, each lane on columns of its own. It compares the
// places of kBatch edges, 4 bytes per column, before it reads the gradients of those that match:
// one in as many as a bag has ids.
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/embedding/cuda/bag_maxima.cuh"

namespace plait {
namespace {

constexpr int kBatch = 4;

// The part of MaximaSums that the kernels take.
struct View {
  const RowGroup* groups;
  std::uint32_t count;
  const Slot *from, *places;
  GradientRows gradients;
  float *y, *parts;
};

template <int kLanes>
__global__ void __launch_bounds__(kThreadsOfItems) sum_groups(const __grid_constant__ View a) {
  const std::uint64_t number = item_of_thread() / kLanes;
  if (number >= a.count) return;
  const RowGroup group = a.groups[number];
  const std::uint64_t columns = a.gradients.columns;
  float* const to = (group.target & RowGroup::kPartial) != 0
                        ? a.parts + (group.target & ~RowGroup::kPartial) * columns
                        : a.y + group.target * columns;
  const EdgeOffset end = group.begin + group.edges;
  for (std::uint64_t c = threadIdx.x % kLanes; c < columns; c += kLanes) {
    float sum = 0;
    for (EdgeOffset e = group.begin; e < end; e += kBatch) {
      std::uint64_t at[kBatch];
      bool taken[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        at[k] = e + k < end ? a.from[e + k] * a.gradients.stride + c : 0;
        taken[k] = e + k < end && a.gradients.places[at[k]] == a.places[e + k];
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k)
        if (taken[k]) sum += a.gradients.at[at[k]];
    }
    to[c] = sum;
  }
}

// Adds the parts of a cut row, in their order; a thread has a column of a row.
__global__ void __launch_bounds__(kThreadsOfItems)
    add_parts(const CutRow* rows, std::uint64_t count, const float* parts, std::uint64_t columns,
              float* y) {
  const std::uint64_t i = item_of_thread();
  if (i >= count * columns) return;
  const CutRow row = rows[i / columns];
  const std::uint64_t c = i % columns;
  float sum = 0;
#pragma unroll 8
  for (std::uint64_t k = 0; k < row.count; ++k) sum += parts[(row.first + k) * columns + c];
  y[row.row * columns + c] = sum;
}

}  // namespace

void sum_maxima(const MaximaSums& a, cudaStream_t stream) {
  const std::uint64_t columns = a.gradients.columns;
  const View view{a.groups.groups(), a.groups.size(), a.from, a.places, a.gradients, a.y, a.parts};
  if (view.count == 0 || columns == 0) return;
  for_lanes<4>(columns, [&](auto lanes) {
    constexpr int kLanes = decltype(lanes)::value;
    sum_groups<kLanes>
        <<<blocks_of_items(std::uint64_t{view.count} * kLanes), kThreadsOfItems, 0, stream>>>(view);
  });
  if (const std::uint64_t cut = a.groups.cut_size(); cut > 0)
    add_parts<<<blocks_of_items(cut * columns), kThreadsOfItems, 0, stream>>>(
        a.groups.cut_rows(), cut, a.parts, columns, a.y);
  check_cuda(cudaGetLastError(), "gradients of maxima");
}

}  // namespace plait
