// Softmax over the edges of each row, and its gradient. A warp keeps, for each head, the greatest
// score and the sum of powers of its group; the groups of a cut row leave both in a record, one
// kernel joins the records of a row, and another one writes its edges. Internal to this room.
#pragma once

#include <cmath>

#include "plait/kernels/cuda/warp_edges.cuh"
#include "plait/kernels/row_cut.h"

namespace plait {

inline constexpr unsigned kWarpsOfBlock = kThreads / kWarp;

// The neighbour groups of rows of edges.
struct EdgeLists {
  const RowGroup* groups;
  const std::uint32_t* partial_rows;
  std::uint32_t group_count;
  const Slot* columns;
  const std::uint32_t* place;  // of each edge in the caller's order
};

// The group of this warp.
struct EdgeGroup {
  bool there, partial = false;
  std::uint32_t row = 0, record = 0;
  RowGroup group{};

  __device__ explicit EdgeGroup(const EdgeLists& lists) {
    const std::uint32_t number = blockIdx.x * kWarpsOfBlock + threadIdx.x / kWarp;
    there = number < lists.group_count;
    if (!there) return;
    group = lists.groups[number];
    partial = (group.target & RowGroup::kPartial) != 0;
    record = group.target & ~RowGroup::kPartial;
    row = partial ? lists.partial_rows[record] : group.target;
  }
};

struct EdgeSoftmaxView {
  EdgeLists lists;
  std::uint32_t heads;
  const float* z;
  const float* dp;  // of the gradient
  float* p;
  float* records;  // [most | total] of each head, for each group of a cut row
};

// The greatest score and the sum of powers; of the gradient, `total` is the sum of p dp.
template <bool kGradient>
struct SoftmaxNorm {
  float most = -INFINITY, total = 0;

  // Adds the norm of other edges.
  __device__ void add(const SoftmaxNorm& other) {
    if constexpr (kGradient) {
      total += other.total;
    } else {
      const float greater = fmaxf(most, other.most);  // which is a number if one of both is
      if (most == -INFINITY && other.most == -INFINITY) {
        total += other.total;  // of no edges, or of scores of -inf: powers of 0 once one is greater
        return;
      }
      total = total * expf(most - greater) + other.total * expf(other.most - greater);
      most = greater;
    }
  }
  __device__ float value(float z, float dp) const {
    return kGradient ? z * (dp - total) : expf(z - most) / total;
  }
};

template <bool kGradient>
__device__ float dp_at(const EdgeSoftmaxView& v, std::uint64_t at) {
  return kGradient ? __ldg(v.dp + at) : 0.0f;
}

template <bool kGradient>
__device__ void write_softmax(const EdgeSoftmaxView& v, const RowGroup& group, std::uint32_t head,
                              const SoftmaxNorm<kGradient>& norm) {
  for (std::uint32_t e = threadIdx.x % kWarp; e < group.edges; e += kWarp) {
    const std::uint64_t at = std::uint64_t{__ldg(v.lists.place + group.begin + e)} * v.heads + head;
    v.p[at] = norm.value(__ldg(v.z + at), dp_at<kGradient>(v, at));
  }
}

template <bool kGradient>
__global__ void __launch_bounds__(kThreads)
    softmax_of_groups(const __grid_constant__ EdgeSoftmaxView v) {
  const EdgeGroup mine(v.lists);
  if (!mine.there) return;
  const std::uint32_t lane = threadIdx.x % kWarp;
  for (std::uint32_t head = 0; head < v.heads; ++head) {
    SoftmaxNorm<kGradient> norm;
    for (std::uint32_t e = lane; e < mine.group.edges; e += kWarp) {
      const std::uint64_t at =
          std::uint64_t{__ldg(v.lists.place + mine.group.begin + e)} * v.heads + head;
      const float z = __ldg(v.z + at);
      norm.add(kGradient ? SoftmaxNorm<kGradient>{0, z * dp_at<kGradient>(v, at)}
                         : SoftmaxNorm<kGradient>{z, 1});
    }
#pragma unroll
    for (int distance = 1; distance < kWarp; distance *= 2)
      norm.add({__shfl_xor_sync(kAll, norm.most, distance),
                __shfl_xor_sync(kAll, norm.total, distance)});
    if (!mine.partial) {
      write_softmax(v, mine.group, head, norm);
    } else if (lane == 0) {
      float* const record = v.records + std::uint64_t{mine.record} * 2 * v.heads;
      record[head] = norm.most;
      record[v.heads + head] = norm.total;
    }
  }
}

// Gives all groups of a cut row the norm of the row: one warp per row and head.
template <bool kGradient>
__global__ void join_softmax_norms(const CutRow* rows, const __grid_constant__ EdgeSoftmaxView v) {
  const CutRow row = rows[blockIdx.x];
  const std::uint32_t head = blockIdx.y;
  const auto record = [&](std::uint32_t k) {
    return v.records + (std::uint64_t{row.first} + k) * 2 * v.heads + head;
  };
  SoftmaxNorm<kGradient> norm;
  for (std::uint32_t k = threadIdx.x; k < row.count; k += kWarp)
    norm.add({record(k)[0], record(k)[v.heads]});
#pragma unroll
  for (int distance = 1; distance < kWarp; distance *= 2)
    norm.add(
        {__shfl_xor_sync(kAll, norm.most, distance), __shfl_xor_sync(kAll, norm.total, distance)});
  for (std::uint32_t k = threadIdx.x; k < row.count; k += kWarp) {
    record(k)[0] = norm.most;
    record(k)[v.heads] = norm.total;
  }
}

template <bool kGradient>
__global__ void __launch_bounds__(kThreads)
    write_softmax_of_cut_rows(const __grid_constant__ EdgeSoftmaxView v) {
  const EdgeGroup mine(v.lists);
  if (!mine.there || !mine.partial) return;
  const float* const record = v.records + std::uint64_t{mine.record} * 2 * v.heads;
  for (std::uint32_t head = 0; head < v.heads; ++head)
    write_softmax<kGradient>(v, mine.group, head, {record[head], record[v.heads + head]});
}

template <bool kGradient>
void launch_softmax(const EdgeSoftmaxView& v, const RowGroups& groups, cudaStream_t stream) {
  const unsigned blocks = (groups.size() + kWarpsOfBlock - 1) / kWarpsOfBlock;
  softmax_of_groups<kGradient><<<blocks, kThreads, 0, stream>>>(v);
  if (groups.cut_size() == 0) return;
  join_softmax_norms<kGradient>
      <<<dim3(groups.cut_size(), v.heads), kWarp, 0, stream>>>(groups.cut_rows(), v);
  write_softmax_of_cut_rows<kGradient><<<blocks, kThreads, 0, stream>>>(v);
}

}  // namespace plait
