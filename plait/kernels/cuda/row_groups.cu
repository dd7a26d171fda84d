// Three passes count the groups of each row, scan the counts, and write; one sort puts groups in
// order.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cstddef>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/error.h"
#include "plait/kernels/cuda/row_groups.cuh"
#include "plait/kernels/row_cut.h"
#include "plait/machine/machine.h"

namespace plait {
namespace {

constexpr int kThreads = 256;

// The counts of all rows before this one.
struct Counts {
  EdgeOffset edges;
  std::uint64_t squares;  // of the numbers of edges
  std::uint32_t groups, partial_sums;
  std::uint32_t short_in_small,
      short_in_large;       // groups that are short in a small and in a large graph
  std::uint32_t few, hubs;  // rows that are cut into few and into many groups
  std::uint32_t long_rows;  // of more than kWholeRow edges
  __host__ __device__ friend Counts operator+(Counts a, Counts b) {
    return {a.edges + b.edges,
            a.squares + b.squares,
            a.groups + b.groups,
            a.partial_sums + b.partial_sums,
            a.short_in_small + b.short_in_small,
            a.short_in_large + b.short_in_large,
            a.few + b.few,
            a.hubs + b.hubs,
            a.long_rows + b.long_rows};
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
    if (row >= count || skipped(row)) return {};
    const EdgeOffset edges = end[row] - begin[row];
    const RowCut cut = cut_row(edges, most);
    const bool many = cut.groups > 1, hub = cut.groups > CutRow::kFew;
    const EdgeOffset last = edges - (cut.groups - 1) * EdgeOffset{cut.group_size};
    return {edges,
            edges * edges,
            cut.groups,
            many ? cut.groups : 0,
            last <= kShortInSmall,
            last <= kShortInLarge,
            many && !hub,
            hub,
            edges > kWholeRow};
  }
  __host__ __device__ bool skipped(std::uint64_t row) const {
    return skip_empty && end[row] == begin[row];
  }
};

// The order of groups: by cluster, then by edges, most first; short groups after all others if they
// are apart.
struct Order {
  const std::uint32_t* clusters;  // by row, or null
  bool apart;
  std::uint32_t most_of_short;  // edges

  __device__ std::uint64_t key(std::uint32_t row, std::uint32_t edges) const {
    if (clusters == nullptr) return ~edges;
    const bool last = apart && edges <= most_of_short;
    return std::uint64_t{last} << 63 | std::uint64_t{clusters[row]} << 32 | ~edges;
  }
};

// Per group, a group and a key; per row that is cut, a CutRow, hubs last; per group of such a row,
// its number.
struct Written {
  RowGroup* groups;
  std::uint64_t* keys;
  CutRow* cut_rows;
  std::uint32_t* partial_rows;
};

__global__ void write_groups(Rows rows, const Counts* before, std::uint32_t few, Order order,
                             Written to) {
  const std::uint64_t row = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  if (row >= rows.count || rows.skipped(row)) return;
  const EdgeOffset begin = rows.begin[row], degree = rows.end[row] - begin;
  const RowCut cut = cut_row(degree, rows.most);
  const Counts at = before[row];
  const auto number = static_cast<std::uint32_t>(row);
  if (cut.groups > 1)
    to.cut_rows[cut.groups > CutRow::kFew ? few + at.hubs : at.few] = {number, at.partial_sums,
                                                                       cut.groups};
  for (std::uint32_t g = 0; g < cut.groups; ++g) {
    const EdgeOffset first = g * EdgeOffset{cut.group_size};
    const auto edges = static_cast<std::uint32_t>(min(degree - first, EdgeOffset{cut.group_size}));
    if (cut.groups > 1) to.partial_rows[at.partial_sums + g] = number;
    to.groups[at.groups + g] = {
        begin + first, edges, cut.groups > 1 ? RowGroup::kPartial | (at.partial_sums + g) : number};
    to.keys[at.groups + g] = order.key(number, edges);
  }
}

}  // namespace

RowGroups::RowGroups(const EdgeOffset* begin, const EdgeOffset* end, std::uint64_t rows,
                     const RowGroupOptions& options, cudaStream_t stream) {
  const bool can_be_whole = cut(begin, end, rows, options, stream);
  if (!options.whole || options.pool || !can_be_whole || edges_ >= machine().even_edges) return;
  RowGroupOptions wider = options;
  wider.most = kWholeRow, wider.whole = false;
  whole_ = std::make_unique<const RowGroups>(begin, end, rows, wider, stream);
}

RowGroups::RowGroups(const GroupCounts& room)
    : groups_(room.groups),
      cut_(room.few + room.hubs),
      partial_rows_(room.partial_sums + std::size_t{1}),  // the last one is no row's
      edges_(room.edges),
      short_(room.groups - room.long_groups),
      hubs_(room.hubs),
      partial_sums_(room.partial_sums + 1) {}

RowGroups::RowGroups(const GroupCounts& counts, const FromPool& pool)
    : groups_(counts.groups, pool),
      cut_(counts.few + counts.hubs, pool),
      edges_(counts.edges),
      hubs_(counts.hubs),
      partial_sums_(counts.partial_sums) {}

GroupCounts RowGroups::counts() const {
  return {.groups = size(),
          .long_groups = size() - short_,
          .few = cut_size() - hubs_,
          .hubs = hubs_,
          .partial_sums = partial_sums(),
          .edges = edges_};
}

void RowGroups::take(const RowGroups& from, std::uint64_t rows, std::uint64_t room_rows,
                     std::vector<PaddedCopy>& copies) const {
  static_assert(sizeof(RowGroup) == 16 && offsetof(RowGroup, target) == 12);
  const GroupCounts given = from.counts(), room = counts();
  // Rows without edges follow, then groups that write the partial sum of no row.
  const std::uint64_t of_rows = given.groups + (room_rows - rows);
  copies.push_back({.from = from.groups(),
                    .to = const_cast<RowGroup*>(groups()),
                    .bytes = given.groups * sizeof(RowGroup),
                    .room = of_rows * sizeof(RowGroup),
                    .pad = {0, 0, 0, static_cast<std::uint32_t>(rows)},
                    .step = 1});
  copies.push_back({.to = const_cast<RowGroup*>(groups()) + of_rows,
                    .room = (room.groups - of_rows) * sizeof(RowGroup),
                    .pad = {0, 0, 0, RowGroup::kPartial | (room.partial_sums - 1)}});
  auto* const cut_rows = const_cast<CutRow*>(this->cut_rows());
  copies.push_back({.from = from.cut_rows(),
                    .to = cut_rows,
                    .bytes = given.few * sizeof(CutRow),
                    .room = room.few * sizeof(CutRow)});
  copies.push_back({.from = from.cut_rows() + given.few,
                    .to = cut_rows + room.few,
                    .bytes = given.hubs * sizeof(CutRow),
                    .room = room.hubs * sizeof(CutRow)});
  copies.push_back({.from = from.partial_rows(),
                    .to = const_cast<std::uint32_t*>(partial_rows()),
                    .bytes = given.partial_sums * sizeof(std::uint32_t),
                    .room = room.partial_sums * sizeof(std::uint32_t)});
}

bool RowGroups::cut(const EdgeOffset* begin, const EdgeOffset* end, std::uint64_t rows,
                    const RowGroupOptions& options, cudaStream_t stream) {
  require<UsageError>(rows < RowGroup::kPartial, "{} rows on one GPU are more than 2^31 - 1", rows);
  const Rows all{begin, end, rows, options.most, options.skip_empty};
  const std::optional<FromPool>& pool = options.pool;
  const auto scratch_pool = pool ? std::optional(pool->scratch()) : std::nullopt;
  DeviceArray<Counts> before(rows + 1, scratch_pool);
  const auto counts =
      thrust::make_transform_iterator(thrust::counting_iterator<std::uint64_t>(0), all);
  with_scratch("planning neighbour groups", scratch_pool, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveScan(scratch, bytes, counts, before.data(),
                                          cuda::std::plus<>{}, Counts{}, rows + 1, stream);
  });
  Counts total{};
  check_cuda(
      cudaMemcpyAsync(&total, before.data() + rows, sizeof(total), cudaMemcpyDeviceToHost, stream),
      "planning neighbour groups");
  check_cuda(cudaStreamSynchronize(stream), "planning neighbour groups");
  edges_ = total.edges;
  if (!pool && end == begin + 1 && !options.skip_empty && suits_even_cut(edges_, rows)) {
    even_ = EvenCut(begin, rows, edges_, stream);
    gains_by_even_cut_ = plait::gains_by_even_cut({edges_, total.squares, rows});
  }
  groups_ = DeviceArray<RowGroup>(total.groups, pool);
  cut_ = DeviceArray<CutRow>(total.few + total.hubs, pool);
  hubs_ = total.hubs;
  const std::uint32_t most_of_short = short_group(edges_);
  if (edges_ <= total.groups * EdgeOffset{machine().short_group})
    short_ = most_of_short == kShortInSmall ? total.short_in_small : total.short_in_large;
  partial_sums_ = total.partial_sums;
  partial_rows_ = DeviceArray<std::uint32_t>(total.partial_sums, pool);
  if (total.groups == 0) return false;

  DeviceArray<RowGroup> unsorted(total.groups, scratch_pool);
  DeviceArray<std::uint64_t> keys(total.groups, scratch_pool),
      sorted_keys(total.groups, scratch_pool);
  const auto blocks = static_cast<unsigned>((rows + kThreads - 1) / kThreads);
  write_groups<<<blocks, kThreads, 0, stream>>>(
      all, before.data(), total.few, Order{options.clusters, short_ > 0, most_of_short},
      {unsorted.data(), keys.data(), cut_.data(), partial_rows_.data()});
  check_cuda(cudaGetLastError(), "planning neighbour groups");
  const int key_bits = options.clusters != nullptr ? 64 : 32;
  with_scratch("planning neighbour groups", scratch_pool, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data(), sorted_keys.data(),
                                           unsorted.data(), groups_.data(), total.groups, 0,
                                           key_bits, stream);
  });
  check_cuda(cudaStreamSynchronize(stream), "planning neighbour groups");
  return cut_size() > 0 && total.long_rows == 0;
}

}  // namespace plait
