// The gradient of a row is the sum of the gradients of all bags that name it: a sparse product with
// the transposed matrix of bags. Edges are sorted by row with a stable radix sort, 8 bytes per edge
// and pass of 8 bits; rows that many bags name are cut into the SpMM's neighbour groups.
//
// A step of few samples is bound by launches and by waits of the host. So one sort serves all
// tables, and the host waits once: for the numbers of rows and of neighbour groups, which come
// together. Groups are then placed by counters, first those with many edges, for which a sum waits
// longest. Their order among equals differs from run to run, but no sum depends on it.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <bit>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/error.h"
#include "plait/base/lower_bound.h"
#include "plait/kernels/cuda/spmm.cuh"
#include "plait/store/cuda/bag_maxima.cuh"
#include "plait/store/cuda/named_rows.cuh"

namespace plait {
namespace {

constexpr const char* kWhat = "gradients by row";
using Word = unsigned long long;  // for atomicAdd()
static_assert(sizeof(Word) == sizeof(std::uint64_t));

// Per group of tables, numbers of neighbour groups with many edges and with few, of partial sums,
// and of rows that are cut into few groups and into many.
struct Counters {
  Word long_groups, short_groups, partial_sums, few, hubs;
};
constexpr std::uint64_t kCounters = sizeof(Counters) / sizeof(Word);
constexpr EdgeOffset kShort = kShortInLarge;  // the most edges of a group with few

// NamedRows::found_: the number of rows; by table and the end the number of rows before it; by
// group of tables the counts of its neighbour groups; likewise, how many of these are placed.
struct Found {
  std::uint64_t* rows;
  std::uint64_t* before;
  Counters *counts, *placed;
};
Found found_at(std::uint64_t* at, const RowNumbers& numbers) {
  auto* const counts = reinterpret_cast<Counters*>(at + 1 + numbers.bases.size());
  return {at, at + 1, counts, counts + numbers.groups.size()};
}

// The groups of tables: `ends[g]` is one past the number of the last row.
struct Ranges {
  Slot ends[kMostTableGroups] = {};
  std::uint32_t count = 0;

  explicit Ranges(const RowNumbers& numbers) {
    for (const TableGroup& group : numbers.groups) ends[count++] = numbers.bases[group.end];
  }
  __device__ std::uint32_t of(Slot row) const {
    std::uint32_t group = 0;
    while (group + 1 < count && row >= ends[group]) ++group;
    return group;
  }
};

// Returns the place of the first table behind those that begin at the row or before.
__device__ std::uint64_t table_behind(const Slot* bases, std::uint64_t tables, Slot row) {
  return lower_bound(bases, 0, tables, std::uint64_t{row} + 1);
}

__global__ void __launch_bounds__(kThreadsOfItems)
    number_kernel(Slot* numbers, std::uint64_t count) {
  const std::uint64_t i = item_of_thread();
  if (i < count) numbers[i] = static_cast<Slot>(i);
}

__global__ void __launch_bounds__(kThreadsOfItems)
    permute_kernel(const Slot* order, const __grid_constant__ DeviceEdges from,
                   const __grid_constant__ DeviceEdges to) {
  const std::uint64_t i = item_of_thread();
  if (i >= from.count) return;
  const Slot at = order[i];
  if (to.from != nullptr) to.from[i] = from.from[at];
  if (to.weights != nullptr) to.weights[i] = from.weights[at];
  if (to.counts != nullptr) to.counts[i] = from.counts[at];
  if (to.places != nullptr) to.places[i] = from.places[at];
}

OwnedEdges sorted(const DeviceEdges& edges, Slot rows, cudaStream_t stream) {
  const FromPool pool{stream, stream};
  const auto count = static_cast<std::int64_t>(edges.count);
  // One bit more than rows have, if need be, so that kNoRow is behind all of them.
  const int bits = std::max(1, static_cast<int>(std::bit_width(rows)));
  const EdgeParts parts = edges.parts();
  OwnedEdges to(edges.count, parts, pool);
  const auto sort_with = [&](const Slot* values, Slot* sorted_values) {
    with_scratch(kWhat, pool, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, edges.rows, to.rows, values,
                                             sorted_values, count, 0, bits, stream);
    });
  };
  if (!parts.weights && !parts.counts && !parts.places) {
    if (parts.from)
      sort_with(edges.from, to.from);
    else
      with_scratch(kWhat, pool, [&](void* scratch, std::size_t& bytes) {
        return cub::DeviceRadixSort::SortKeys(scratch, bytes, edges.rows, to.rows, count, 0, bits,
                                              stream);
      });
    return to;
  }
  DeviceArrays memory;
  Slot *numbers = nullptr, *order = nullptr;
  memory.add(numbers, edges.count);
  memory.add(order, edges.count);
  memory.allocate(pool);
  number_kernel<<<blocks_of_items(edges.count), kThreadsOfItems, 0, stream>>>(numbers, edges.count);
  sort_with(numbers, order);
  permute_kernel<<<blocks_of_items(edges.count), kThreadsOfItems, 0, stream>>>(order, edges, to);
  check_cuda(cudaGetLastError(), kWhat);
  return to;
}

// Tells whether an edge is the first of its row.
struct IsFirst {
  const Slot* rows;
  __device__ bool operator()(std::uint64_t i) const {
    return rows[i] != kNoRow && (i == 0 || rows[i] != rows[i - 1]);
  }
};

struct FindArgs {
  const Slot* edges;  // the row of each, ascending
  std::uint64_t count;
  const Slot* bases;
  std::uint64_t tables;
  Ranges ranges;
  EdgeOffset* starts;
  Slot* rows;
  Found found;
};

// Writes the number of row k, and k as the number of rows before each table that begins with it.
// Completes the rows' first edges by the end of the last. Returns the number of edges.
__device__ EdgeOffset find_row(const FindArgs& a, std::uint64_t k, std::uint64_t count) {
  const EdgeOffset begin = a.starts[k];
  const Slot row = a.edges[begin];
  a.rows[k] = row;
  std::uint64_t t = begin == 0 ? 0 : table_behind(a.bases, a.tables, a.edges[begin - 1]);
  for (; t < a.tables && a.bases[t] <= row; ++t) a.found.before[t] = k;
  if (k + 1 < count) return a.starts[k + 1] - begin;
  const EdgeOffset end = lower_bound(a.edges, begin, a.count, kNoRow);
  a.starts[count] = end;
  for (; t <= a.tables; ++t) a.found.before[t] = count;
  return end - begin;
}

// A thread takes a row.
__global__ void __launch_bounds__(kThreadsOfItems) find_kernel(const __grid_constant__ FindArgs a) {
  const std::uint64_t k = item_of_thread(), count = *a.found.rows;
  if (blockIdx.x * std::uint64_t{kThreadsOfItems} >= count) return;  // of the whole block
  const bool there = k < count;
  const EdgeOffset edges = there ? find_row(a, k, count) : 0;
  const std::uint32_t range = there ? a.ranges.of(a.rows[k]) : a.ranges.count;
  const RowCut cut = cut_row(edges, kFixedGroup);
  for (std::uint32_t g = 0; g < a.ranges.count; ++g) {
    const bool whole = range == g && cut.groups == 1;
    const int few_edges = __syncthreads_count(whole && edges <= kShort);
    const int many_edges = __syncthreads_count(whole && edges > kShort);
    if (threadIdx.x > 0) continue;
    if (few_edges > 0) atomicAdd(&a.found.counts[g].short_groups, Word(few_edges));
    if (many_edges > 0) atomicAdd(&a.found.counts[g].long_groups, Word(many_edges));
  }
  if (cut.groups == 1 || range == a.ranges.count) return;
  Counters& counts = a.found.counts[range];
  atomicAdd(&counts.long_groups, Word{cut.groups});
  atomicAdd(&counts.partial_sums, Word{cut.groups});
  atomicAdd(cut.groups > CutRow::kFew ? &counts.hubs : &counts.few, Word{1});
}

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
  Ranges ranges;
  Counters* placed;
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
  Counters& placed = a.placed[range];
  const EdgeOffset begin = a.starts[k], edges = a.starts[k + 1] - begin;
  const bool hub = cut.groups > CutRow::kFew;
  const std::uint64_t at = atomicAdd(&placed.long_groups, Word{cut.groups});
  const auto part = static_cast<std::uint32_t>(atomicAdd(&placed.partial_sums, Word{cut.groups}));
  const std::uint64_t place = atomicAdd(hub ? &placed.hubs : &placed.few, Word{1});
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
    const bool is_short = edges <= kShort;
    std::uint32_t before = 0, all = 0;
    Scan(scratch).ExclusiveSum(whole ? (is_short ? kOneShort : 1u) : 0u, before, all);
    if (threadIdx.x == 0) {
      first_long = atomicAdd(&a.placed[g].long_groups, Word{all % kOneShort});
      first_short = atomicAdd(&a.placed[g].short_groups, Word{all / kOneShort});
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

NamedRows::NamedRows(OwnedEdges edges, const RowNumbers& numbers, const Slot* bases,
                     Readback& counts, cudaStream_t stream)
    : numbers_(numbers),
      bases_(bases),
      counts_(counts),
      sorted_(0, {}, FromPool{stream, stream}),
      most_(std::min<std::uint64_t>(edges.count, numbers.bases.back())),
      before_(numbers.bases.size()),
      groups_(numbers.groups.size()) {
  require<DoesNotFitError>(edges.count < kNoRow, "{} ids in a batch are too many for one GPU",
                           edges.count);
  if (most_ == 0) return;
  sorted_ = sorted(edges, numbers.bases.back(), stream);
  find_rows(stream);
}

// The numbers that the host reads of found_.
std::uint64_t NamedRows::words_of_counts() const {
  return 1 + numbers_.bases.size() + kCounters * numbers_.groups.size();
}

void NamedRows::find_rows(cudaStream_t stream) {
  const FromPool pool{stream, stream};
  const std::uint64_t words = words_of_counts() + kCounters * numbers_.groups.size();
  memory_.add(rows_, most_);
  memory_.add(starts_, most_ + 1);
  memory_.add(found_, words);
  memory_.allocate(pool);
  check_cuda(cudaMemsetAsync(found_, 0, words * sizeof(*found_), stream), kWhat);
  const Found found = found_at(found_, numbers_);
  const thrust::counting_iterator<EdgeOffset> numbers(0);
  const auto is_first = thrust::make_transform_iterator(numbers, IsFirst{sorted_.rows});
  with_scratch(kWhat, pool, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, numbers, is_first, starts_, found.rows,
                                      static_cast<std::int64_t>(sorted_.count), stream);
  });
  find_kernel<<<blocks_of_items(most_), kThreadsOfItems, 0, stream>>>(
      {sorted_.rows, sorted_.count, bases_, numbers_.tables.size(), Ranges(numbers_), starts_,
       rows_, found});
  check_cuda(cudaGetLastError(), kWhat);
  counts_.numbers.reserve(words_of_counts());
  check_cuda(
      cudaMemcpyAsync(counts_.numbers.data(), found_, words_of_counts() * sizeof(std::uint64_t),
                      cudaMemcpyDeviceToHost, stream),
      kWhat);
  counts_.there.record(stream);
}

void NamedRows::wait() {
  if (most_ == 0) return;
  check_cuda(cudaEventSynchronize(counts_.there.get()), kWhat);
  const Found found = found_at(counts_.numbers.data(), numbers_);
  before_.assign(found.before, found.before + before_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Counters& c = found.counts[g];
    require<UsageError>(rows_of(numbers_.groups[g]) < RowGroup::kPartial,
                        "{} rows on one GPU are more than 2^31 - 1", rows_of(numbers_.groups[g]));
    const auto groups = static_cast<std::uint32_t>(c.long_groups + c.short_groups);
    groups_[g] = {.groups = groups,
                  .long_groups = static_cast<std::uint32_t>(c.long_groups),
                  .few = static_cast<std::uint32_t>(c.few),
                  .hubs = static_cast<std::uint32_t>(c.hubs),
                  .partial_sums = static_cast<std::uint32_t>(c.partial_sums),
                  .edges = sorted_.count};
  }
}

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
                   .ranges = Ranges(numbers),
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
