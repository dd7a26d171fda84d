// Neighbour groups of rows that edges name, and their sums by the SpMM. The host knows the numbers
// of groups, but not their places: these are taken from counters, first by groups with many edges,
// for which a sum waits longest. The order of groups among equals differs from run to run, but no
// sum depends on it.
#include <cub/block/block_scan.cuh>
#include <optional>

#include "plait/base/cuda/one_each.cuh"
#include "plait/embedding/cuda/bag_maxima.cuh"
#include "plait/embedding/cuda/found_rows.cuh"
#include "plait/embedding/cuda/named_rows.cuh"
#include "plait/kernels/cuda/spmm.cuh"

namespace plait {
namespace {

constexpr const char* kWhat = "gradients by row";

// Where the rows of a group of tables go. Arrays that may be null are as of SumOfGroup.
struct GroupOut {
  std::uint64_t first = 0;  // the place of its first row among all
  RowGroup* groups = nullptr;
  CutRow* cut_rows = nullptr;
  std::uint32_t long_groups = 0, few = 0;
  std::int64_t* rows = nullptr;
  Slot *numbers = nullptr, *ids = nullptr;
  float* scale = nullptr;  // 1 / the number of ids; or null
};
struct WriteArgs {
  std::uint64_t count;
  const EdgeOffset* starts;
  const Slot* rows;
  const Slot* counts;  // by edge, or null
  const Slot* bases;
  std::uint64_t tables;
  TableRanges ranges;
  GroupCounters* placed;
  GroupOut to[kMostTableGroups];
};

__device__ void write_row(const WriteArgs& a, const GroupOut& to, std::uint64_t k) {
  const Slot row = a.rows[k];
  const std::uint64_t at = k - to.first;
  if (to.rows != nullptr) to.rows[at] = row - a.bases[table_behind(a.bases, a.tables, row) - 1];
  if (to.numbers != nullptr) to.numbers[at] = row;
  if (to.ids == nullptr && to.scale == nullptr) return;
  const EdgeOffset begin = a.starts[k], end = a.starts[k + 1];
  Slot ids = a.counts == nullptr ? static_cast<Slot>(end - begin) : 0;
  for (EdgeOffset e = begin; a.counts != nullptr && e < end; ++e) ids += a.counts[e];
  if (to.ids != nullptr) to.ids[at] = ids;
  if (to.scale != nullptr) to.scale[at] = 1.0f / static_cast<float>(ids);
}

// Writes the neighbour groups of a row that is cut.
__device__ void write_cut_row(const WriteArgs& a, std::uint32_t range, std::uint64_t k,
                              const RowCut& cut) {
  const GroupOut& to = a.to[range];
  GroupCounters& placed = a.placed[range];
  const EdgeOffset begin = a.starts[k], edges = a.starts[k + 1] - begin;
  const bool hub = cut.groups > CutRow::kFew;
  const std::uint64_t at = atomicAdd(&placed.long_groups, CountWord{cut.groups});
  const auto part =
      static_cast<std::uint32_t>(atomicAdd(&placed.partial_sums, CountWord{cut.groups}));
  const std::uint64_t place = atomicAdd(hub ? &placed.hubs : &placed.few, CountWord{1});
  to.cut_rows[(hub ? to.few : 0) + place] = {static_cast<std::uint32_t>(k - to.first), part,
                                             cut.groups};
  for (std::uint32_t g = 0; g < cut.groups; ++g) {
    const EdgeOffset first = g * EdgeOffset{cut.group_size};
    const EdgeOffset some = min(edges - first, EdgeOffset{cut.group_size});
    to.groups[at + g] = {begin + first, static_cast<std::uint32_t>(some),
                         RowGroup::kPartial | (part + g)};
  }
}

// A thread takes a row. Groups with many edges stand first. Threads of a block take places
// together.
__global__ void __launch_bounds__(kThreadsOfItems)
    write_groups(const __grid_constant__ WriteArgs a) {
  using Scan = cub::BlockScan<std::uint32_t, kThreadsOfItems>;
  __shared__ typename Scan::TempStorage scratch;
  __shared__ std::uint64_t first_long, first_short;
  constexpr std::uint32_t kOneShort = 1u << 16;  // counts of both kinds in one number
  static_assert(kThreadsOfItems < kOneShort);
  const std::uint64_t k = item_of_thread();
  const bool there = k < a.count;
  const std::uint32_t range = there ? a.ranges.of(a.rows[k]) : a.ranges.count;
  const EdgeOffset begin = there ? a.starts[k] : 0;
  const EdgeOffset edges = there ? a.starts[k + 1] - begin : 0;
  const RowCut cut = cut_row(edges, kFixedGroup);
  if (there) write_row(a, a.to[range], k);
  for (std::uint32_t g = 0; g < a.ranges.count; ++g) {
    const bool whole = range == g && cut.groups == 1;
    if (__syncthreads_or(whole) == 0) continue;
    const bool is_short = edges <= kFewEdges;
    std::uint32_t before = 0, all = 0;
    Scan(scratch).ExclusiveSum(whole ? (is_short ? kOneShort : 1u) : 0u, before, all);
    if (threadIdx.x == 0) {
      first_long = atomicAdd(&a.placed[g].long_groups, CountWord{all % kOneShort});
      first_short = atomicAdd(&a.placed[g].short_groups, CountWord{all / kOneShort});
    }
    __syncthreads();
    const std::uint64_t at = is_short ? a.to[g].long_groups + first_short + before / kOneShort
                                      : first_long + before % kOneShort;
    if (whole)
      a.to[g].groups[at] = {begin, static_cast<std::uint32_t>(edges),
                            static_cast<std::uint32_t>(k - a.to[g].first)};
    __syncthreads();  // before the next turn writes the places
  }
  if (there && cut.groups > 1) write_cut_row(a, range, k, cut);
}

}  // namespace

// The neighbour groups of all groups of tables, and their sums.
class SumsByRow {
 public:
  // Enqueues the writing of groups, and of the rows of all sums.
  SumsByRow(const NamedRows& rows, std::span<const SumOfGroup> sums, cudaStream_t stream)
      : rows_(rows), pool_{stream, stream}, stream_(stream), scales_(sums.size()) {
    const RowNumbers& numbers = rows.numbers_;
    WriteArgs args{.count = rows.before_.back(),
                   .starts = rows.starts_,
                   .rows = rows.rows_,
                   .counts = rows.sorted_.counts,
                   .bases = rows.bases_,
                   .tables = numbers.tables.size(),
                   .ranges = TableRanges(numbers),
                   .placed = found_at(rows.found_, numbers).placed,
                   .to = {}};
    for (std::size_t g = 0; g < sums.size(); ++g) {
      const TableGroup& group = numbers.groups[g];
      if (sums[g].divided) scales_[g] = DeviceArray<float>(rows.rows_of(group), pool_);
      RowGroups& groups = groups_.emplace_back(rows.groups_[g], pool_);
      args.to[g] = {.first = rows.before(group.first),
                    .groups = groups.room_for_groups(),
                    .cut_rows = groups.room_for_cut_rows(),
                    .long_groups = rows.groups_[g].long_groups,
                    .few = rows.groups_[g].few,
                    .rows = sums[g].rows,
                    .numbers = sums[g].numbers,
                    .ids = sums[g].ids,
                    .scale = scales_[g].data()};
    }
    write_groups<<<blocks_of_items(args.count), kThreadsOfItems, 0, stream>>>(args);
    check_cuda(cudaGetLastError(), kWhat);
  }

  void add(std::size_t g, const SumOfGroup& sum) const {
    const RowGroups& groups = groups_[g];
    const GradientRows& x = sum.gradients;
    const DeviceEdges& edges = rows_.sorted_;
    if (groups.size() == 0) return;
    if (edges.places != nullptr) {
      DeviceArray<float> parts(groups.partial_sums() * x.columns, pool_);
      return sum_maxima({.groups = groups,
                         .from = edges.from,
                         .places = edges.places,
                         .gradients = x,
                         .y = sum.values,
                         .parts = parts.data()},
                        stream_);
    }
    DeviceArray<float> parts(spmm_scratch(groups, x.columns), pool_);
    spmm({.groups = &groups,
          .columns = edges.from,
          .weights = edges.weights,
          .x = {x.at, DType::f32, x.stride},
          .x_rows = x.rows,
          .width = x.columns,
          .y = {sum.values, DType::f32, x.columns},
          .row_scale = scales_[g].data(),
          .partial_sums = parts.data(),
          .fixed_order = true},
         stream_);
  }

 private:
  const NamedRows& rows_;
  const FromPool pool_;
  const cudaStream_t stream_;
  std::vector<DeviceArray<float>> scales_;
  std::vector<RowGroups> groups_;
};

void sum_by_row(const NamedRows& rows, std::span<const SumOfGroup> sums, cudaStream_t stream) {
  std::optional<SumsByRow> all;
  for (std::size_t g = 0; g < sums.size(); ++g) {
    if (!all && rows.any()) all.emplace(rows, sums, stream);
    if (all) all->add(g, sums[g]);
    if (sums[g].done != nullptr) sums[g].done->record(stream);
  }
}

}  // namespace plait
