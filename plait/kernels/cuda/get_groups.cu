// Three passes count the groups of each row, scan the counts, and write. Rows stay in their order,
// as in MGG: neighbours of adjacent rows are read at about the same time. Groups are too short to
// be sorted by size.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/base/error.h"
#include "plait/kernels/cuda/get_groups.cuh"

namespace plait {
namespace {

constexpr int kThreads = 256;
constexpr char kWhat[] = "planning neighbour groups";

// The counts of one row, or of all rows before it.
struct Counts {
  std::uint64_t sums;
  std::uint32_t local, remote, short_rows, long_rows;
  __host__ __device__ friend Counts operator+(Counts a, Counts b) {
    return {a.sums + b.sums, a.local + b.local, a.remote + b.remote, a.short_rows + b.short_rows,
            a.long_rows + b.long_rows};
  }
};

struct Rows {
  const EdgeOffset *begin, *split, *end;
  std::uint64_t count;
  std::uint32_t ps, remote_ps;

  static __host__ __device__ std::uint64_t groups(EdgeOffset edges, std::uint32_t most) {
    return (edges + most - 1) / most;
  }
  // One past the last row gives nothing, so that its scanned counts are the totals.
  __host__ __device__ Counts operator()(std::uint64_t row) const {
    if (row >= count) return {};
    const std::uint64_t remote = groups(end[row] - split[row], remote_ps);
    const std::uint64_t local = begin[row] == end[row] ? 1 : groups(split[row] - begin[row], ps);
    const std::uint64_t all = local + remote;
    return {.sums = all > 1 ? all : 0,
            .local = static_cast<std::uint32_t>(local),
            .remote = static_cast<std::uint32_t>(remote),
            .short_rows = all > 1 && all <= GetGroups::kLongRow,
            .long_rows = all > GetGroups::kLongRow};
  }
};

struct Lists {
  RowGroup *local, *remote;
  CutRow *short_rows, *long_rows;
  std::uint32_t* row_of_sum;
};

// One warp per row.
__global__ void write_groups(Rows rows, const Counts* before, Lists to) {
  const std::uint64_t thread = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  const std::uint64_t row = thread / kWarp;
  if (row >= rows.count) return;
  const auto number = static_cast<std::uint32_t>(row), lane = threadIdx.x % kWarp;
  const Counts at = before[row], own = rows(row);
  const EdgeOffset begin = rows.begin[row], split = rows.split[row], end = rows.end[row];
  const auto first_sum = static_cast<std::uint32_t>(at.sums);
  const std::uint32_t groups = own.local + own.remote;
  if (lane == 0 && groups > 1) {
    const CutRow cut{number, first_sum, groups};
    if (own.long_rows > 0)
      to.long_rows[at.long_rows] = cut;
    else
      to.short_rows[at.short_rows] = cut;
  }
  for (std::uint32_t g = lane; g < groups; g += kWarp) {
    const bool local = g < own.local;
    const std::uint32_t most = local ? rows.ps : rows.remote_ps;
    const EdgeOffset first =
        local ? begin + EdgeOffset{g} * most : split + EdgeOffset{g - own.local} * most;
    const EdgeOffset left = (local ? split : end) - first;
    const std::uint32_t target = groups > 1 ? RowGroup::kPartial | (first_sum + g) : number;
    const RowGroup group{first, static_cast<std::uint32_t>(min(left, EdgeOffset{most})), target};
    if (local)
      to.local[at.local + g] = group;
    else
      to.remote[at.remote + g - own.local] = group;
    if (groups > 1) to.row_of_sum[first_sum + g] = number;
  }
}

__global__ void write_clusters(const RowGroup* groups, std::uint64_t count,
                               const std::uint32_t* row_of_sum, const std::uint32_t* clusters,
                               std::uint32_t* keys) {
  const std::uint64_t g = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (g >= count) return;
  const std::uint32_t target = groups[g].target;
  keys[g] =
      clusters[target & RowGroup::kPartial ? row_of_sum[target & ~RowGroup::kPartial] : target];
}

unsigned blocks_for(std::uint64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

void sort_by_cluster(DeviceArray<RowGroup>& groups, const std::uint32_t* row_of_sum,
                     const std::uint32_t* clusters, cudaStream_t stream) {
  if (groups.size() == 0) return;
  DeviceArray<RowGroup> sorted(groups.size());
  DeviceArray<std::uint32_t> keys(groups.size()), sorted_keys(groups.size());
  write_clusters<<<blocks_for(groups.size()), kThreads, 0, stream>>>(
      groups.data(), groups.size(), row_of_sum, clusters, keys.data());
  check_cuda(cudaGetLastError(), kWhat);
  with_scratch(kWhat, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data(), sorted_keys.data(),
                                           groups.data(), sorted.data(), groups.size(), 0, 32,
                                           stream);
  });
  check_cuda(cudaStreamSynchronize(stream), kWhat);
  groups = std::move(sorted);
}

}  // namespace

GetGroups::GetGroups(const EdgeOffset* begin, const EdgeOffset* split, const EdgeOffset* end,
                     std::uint64_t rows, const GetGroupOptions& options, cudaStream_t stream)
    : rows_(rows), most_neighbours_(std::max(options.ps, options.remote_ps)) {
  for (const std::uint32_t ps : {options.ps, options.remote_ps})
    require<UsageError>(ps >= 1 && ps <= GetTuning::kWholeRow,
                        "{} neighbours in a group are not 1 to {}", ps, GetTuning::kWholeRow);
  require<UsageError>(rows < RowGroup::kPartial, "{} rows on one GPU are more than 2^31 - 1", rows);
  const Rows all{begin, split, end, rows, options.ps, options.remote_ps};
  DeviceArray<Counts> before(rows + 1);
  const auto counts =
      thrust::make_transform_iterator(thrust::counting_iterator<std::uint64_t>(0), all);
  with_scratch(kWhat, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(scratch, bytes, counts, before.data(),
                                          cuda::std::plus<>{}, Counts{}, rows + 1, stream);
  });
  Counts total{};
  check_cuda(
      cudaMemcpyAsync(&total, before.data() + rows, sizeof(total), cudaMemcpyDeviceToHost, stream),
      kWhat);
  check_cuda(cudaStreamSynchronize(stream), kWhat);
  require<UsageError>(total.sums < RowGroup::kPartial,
                      "{} neighbour groups on one GPU are more than 2^31 - 1; take a larger ps, or "
                      "more ranks",
                      total.sums);
  if (rows == 0) return;

  local_ = DeviceArray<RowGroup>(total.local);
  remote_ = DeviceArray<RowGroup>(total.remote);
  short_rows_ = DeviceArray<CutRow>(total.short_rows);
  long_rows_ = DeviceArray<CutRow>(total.long_rows);
  row_of_sum_ = DeviceArray<std::uint32_t>(total.sums);
  write_groups<<<blocks_for(rows * kWarp), kThreads, 0, stream>>>(
      all, before.data(),
      {local_.data(), remote_.data(), short_rows_.data(), long_rows_.data(), row_of_sum_.data()});
  check_cuda(cudaGetLastError(), kWhat);
  if (options.clusters != nullptr) {
    sort_by_cluster(local_, row_of_sum_.data(), options.clusters, stream);
    sort_by_cluster(remote_, row_of_sum_.data(), options.clusters, stream);
  }
  check_cuda(cudaStreamSynchronize(stream), kWhat);
}

}  // namespace plait
