// Three passes count the groups of each row, scan the counts, and write; one sort puts groups in
// order.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/error.h"
#include "plait/kernels/cuda/row_groups.cuh"
#include "plait/kernels/row_cut.h"

namespace plait {
namespace {

constexpr int kThreads = 256;

// The counts of all rows before this one.
struct Counts {
  EdgeOffset edges;
  std::uint32_t groups, partial_sums, cut_rows;
  __host__ __device__ friend Counts operator+(Counts a, Counts b) {
    return {a.edges + b.edges, a.groups + b.groups, a.partial_sums + b.partial_sums,
            a.cut_rows + b.cut_rows};
  }
};

struct Rows {
  const EdgeOffset* begin;
  const EdgeOffset* end;
  std::uint64_t count;
  std::uint32_t most;
  bool skip_empty;

  // One past the last row gives nothing, so that its scanned counts are the totals.
  __host__ __device__ Counts operator()(std::uint64_t row) const {
    if (row >= count || skipped(row)) return {0, 0, 0, 0};
    const EdgeOffset edges = end[row] - begin[row];
    const RowCut cut = cut_row(edges, most);
    return cut.groups == 1 ? Counts{edges, 1, 0, 0} : Counts{edges, cut.groups, cut.groups, 1};
  }
  __host__ __device__ bool skipped(std::uint64_t row) const {
    return skip_empty && end[row] == begin[row];
  }
};

// Sorts by cluster, then by edges, most first.
__device__ std::uint64_t order_key(std::uint32_t cluster, std::uint32_t edges) {
  return std::uint64_t{cluster} << 32 | ~edges;
}

// Per group, a group and a key; per row that is cut, a CutRow; per group of such a row, its number.
struct Written {
  RowGroup* groups;
  std::uint64_t* keys;
  CutRow* cut_rows;
  std::uint32_t* partial_rows;
};

__global__ void write_groups(Rows rows, const Counts* before, const std::uint32_t* clusters,
                             Written to) {
  const std::uint64_t row = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (row >= rows.count || rows.skipped(row)) return;
  const EdgeOffset begin = rows.begin[row], degree = rows.end[row] - begin;
  const RowCut cut = cut_row(degree, rows.most);
  const Counts at = before[row];
  const auto number = static_cast<std::uint32_t>(row);
  if (cut.groups > 1) to.cut_rows[at.cut_rows] = {number, at.partial_sums, cut.groups};
  for (std::uint32_t g = 0; g < cut.groups; ++g) {
    const EdgeOffset first = g * EdgeOffset{cut.group_size};
    const auto edges = static_cast<std::uint32_t>(min(degree - first, EdgeOffset{cut.group_size}));
    if (cut.groups > 1) to.partial_rows[at.partial_sums + g] = number;
    to.groups[at.groups + g] = {
        begin + first, edges, cut.groups > 1 ? RowGroup::kPartial | (at.partial_sums + g) : number};
    to.keys[at.groups + g] = order_key(clusters != nullptr ? clusters[row] : 0, edges);
  }
}

}  // namespace

RowGroups::RowGroups(const EdgeOffset* begin, const EdgeOffset* end, std::uint64_t rows,
                     const RowGroupOptions& options, cudaStream_t stream) {
  require<UsageError>(rows < RowGroup::kPartial, "{} rows on one GPU are more than 2^31 - 1", rows);
  const Rows all{begin, end, rows, options.most, options.skip_empty};
  DeviceArray<Counts> before(rows + 1);
  const auto counts =
      thrust::make_transform_iterator(thrust::counting_iterator<std::uint64_t>(0), all);
  with_scratch("planning neighbour groups", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(scratch, bytes, counts, before.data(),
                                          cuda::std::plus<>{}, Counts{0, 0, 0, 0}, rows + 1,
                                          stream);
  });
  Counts total{};
  check_cuda(
      cudaMemcpyAsync(&total, before.data() + rows, sizeof(total), cudaMemcpyDeviceToHost, stream),
      "planning neighbour groups");
  check_cuda(cudaStreamSynchronize(stream), "planning neighbour groups");
  edges_ = total.edges;
  groups_ = DeviceArray<RowGroup>(total.groups);
  cut_ = DeviceArray<CutRow>(total.cut_rows);
  partial_rows_ = DeviceArray<std::uint32_t>(total.partial_sums);
  if (total.groups == 0) return;

  DeviceArray<RowGroup> unsorted(total.groups);
  DeviceArray<std::uint64_t> keys(total.groups), sorted_keys(total.groups);
  const auto blocks = static_cast<unsigned>((rows + kThreads - 1) / kThreads);
  write_groups<<<blocks, kThreads, 0, stream>>>(
      all, before.data(), options.clusters,
      {unsorted.data(), keys.data(), cut_.data(), partial_rows_.data()});
  check_cuda(cudaGetLastError(), "planning neighbour groups");
  const int key_bits = options.clusters != nullptr ? 64 : 32;
  with_scratch("planning neighbour groups", [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data(), sorted_keys.data(),
                                           unsorted.data(), groups_.data(), total.groups, 0,
                                           key_bits, stream);
  });
  check_cuda(cudaStreamSynchronize(stream), "planning neighbour groups");
}

}  // namespace plait
