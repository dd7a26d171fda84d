// The gradient of a row is the sum of the gradients of all bags that name it: a sparse product with
// the transposed matrix of bags. Edges are sorted by row with a stable radix sort, 12 bytes per
// edge and pass of 8 bits; rows that many bags name are summed in pieces by the SpMM's groups.
#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "plait/base/cuda/cub_scratch.cuh"
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/base/error.h"
#include "plait/base/lower_bound.h"
#include "plait/kernels/cuda/spmm.cuh"
#include "plait/store/cuda/bag_gradients.cuh"
#include "plait/store/cuda/bag_maxima.cuh"

namespace plait {
namespace {

// Returns 1 / the ids begin .. end - 1 that count, of a bag. Lanes that share the bag count for
// themselves: their loads are the same.
__device__ float share_of_id(const DeviceBags& bags, EdgeOffset begin, EdgeOffset end) {
  std::uint32_t count = 0;
  for (EdgeOffset e = begin; e < end; ++e) count += bags.ids[e] != kNoRow ? 1 : 0;
  return 1.0f / static_cast<float>(max(count, 1u));
}

constexpr int kBagLanes = 8;

struct EdgeArrays {
  Slot *rows, *from;
  float* weights;
  Slot* counts = nullptr;
  Slot* places = nullptr;
};

template <class T>
T* writable(const DeviceArray<T>& array) {
  return array.size() > 0 ? const_cast<T*>(array.data()) : nullptr;
}

// kBagLanes lanes work on a bag.
__global__ void __launch_bounds__(kThreadsOfItems)
    write_kernel(const __grid_constant__ DevicePieces pieces,
                 const __grid_constant__ DeviceBags bags, const EdgeTable* tables, EdgeArrays to) {
  const std::uint64_t bag = item_of_thread() / kBagLanes;
  if (bag >= pieces.tables * bags.per_table) return;
  const std::uint64_t t = bag / bags.per_table, b = bag % bags.per_table;
  const EdgeTable table = tables[t];
  if (!table.wanted) return;
  const DevicePiece piece = pieces.at[t];
  const EdgeOffset first = bags.offsets[t * bags.per_table];
  const EdgeOffset begin = bags.offsets[bag], end = bags.offsets[bag + 1];
  const float share = pieces.mode == BagMode::mean ? share_of_id(bags, begin, end) : 1.0f;
  for (EdgeOffset e = begin + threadIdx.x % kBagLanes; e < end; e += kBagLanes) {
    const std::uint64_t at = table.edge + e - first;
    const Slot row = own_row(pieces, piece, bags.ids[e]);
    to.rows[at] = row == kNoRow ? kNoRow : table.row + row;
    to.from[at] = table.from + static_cast<Slot>(b) * table.from_step;
    if (to.places != nullptr) to.places[at] = static_cast<Slot>(e - begin);
    if (to.weights != nullptr)
      to.weights[at] = bags.weights == nullptr ? share : share * bags.weights[e];
  }
}

__global__ void __launch_bounds__(kThreadsOfItems)
    gather_kernel(const __grid_constant__ DevicePieces pieces,
                  const __grid_constant__ DeviceBags bags, const EdgeTable* tables,
                  BagGradientsThere gradients, GatheredGradients to) {
  const std::uint64_t bag = item_of_thread() / kWarp;
  if (bag >= pieces.tables * bags.per_table || bags.offsets[bag] == bags.offsets[bag + 1]) return;
  const std::uint64_t t = bag / bags.per_table, b = bag % bags.per_table;
  const EdgeTable table = tables[t];
  if (!table.wanted) return;
  const std::uint64_t first = (b * pieces.tables + t) * pieces.width + pieces.at[t].first_column;
  const std::uint64_t row = (table.from + b * table.from_step) * to.columns;
  for (std::uint64_t c = threadIdx.x % kWarp; c < to.columns; c += kWarp) {
    to.sums[row + c] = gradients.sums[first + c];
    if (to.places != nullptr) to.places[row + c] = gradients.places[first + c];
  }
}

__global__ void __launch_bounds__(kThreadsOfItems)
    number_kernel(Slot* numbers, std::uint64_t count) {
  const std::uint64_t i = item_of_thread();
  if (i < count) numbers[i] = static_cast<Slot>(i);
}

// Marks the first edge of each row.
__global__ void __launch_bounds__(kThreadsOfItems)
    mark_kernel(const Slot* rows, std::uint64_t count, std::uint8_t* first) {
  const std::uint64_t i = item_of_thread();
  if (i < count) first[i] = rows[i] != kNoRow && (i == 0 || rows[i] != rows[i - 1]) ? 1 : 0;
}

__global__ void __launch_bounds__(kThreadsOfItems)
    permute_kernel(const Slot* order, std::uint64_t count, EdgeArrays from, EdgeArrays to) {
  const std::uint64_t i = item_of_thread();
  if (i >= count) return;
  to.from[i] = from.from[order[i]];
  if (to.weights != nullptr) to.weights[i] = from.weights[order[i]];
  if (to.counts != nullptr) to.counts[i] = from.counts[order[i]];
  if (to.places != nullptr) to.places[i] = from.places[order[i]];
}

// Counts the ids that name each row.
__global__ void __launch_bounds__(kThreadsOfItems)
    count_kernel(const EdgeOffset* starts, const Slot* counts, std::uint64_t rows, Slot* ids,
                 float* scale) {
  const std::uint64_t k = item_of_thread();
  if (k >= rows) return;
  Slot sum = counts == nullptr ? static_cast<Slot>(starts[k + 1] - starts[k]) : 0;
  for (EdgeOffset e = starts[k]; counts != nullptr && e < starts[k + 1]; ++e) sum += counts[e];
  ids[k] = sum;
  scale[k] = 1.0f / static_cast<float>(sum);
}

// Completes the rows' first edges by the end of the last, and reads their numbers.
__global__ void __launch_bounds__(kThreadsOfItems)
    rows_kernel(const Slot* sorted, std::uint64_t edges, const std::uint64_t* count,
                EdgeOffset* starts, Slot* rows) {
  const std::uint64_t k = item_of_thread();
  if (k < *count) rows[k] = sorted[starts[k]];
  if (k == *count) starts[k] = lower_bound(sorted, 0, edges, kNoRow);
}

// found[0] is the number of rows; found[1 + t] becomes the number of rows before table t.
__global__ void __launch_bounds__(kThreadsOfItems)
    tables_kernel(const Slot* rows, const Slot* bases, std::uint64_t tables, std::uint64_t* found) {
  const std::uint64_t t = item_of_thread();
  if (t < tables) found[1 + t] = lower_bound(rows, 0, found[0], bases[t]);
}

__global__ void __launch_bounds__(kThreadsOfItems)
    from_kernel(const Slot* rows, std::uint64_t count, Slot base, std::int64_t* out) {
  const std::uint64_t i = item_of_thread();
  if (i < count) out[i] = rows[i] - base;
}

// Edges in the order of rows.
struct SortedEdges {
  DeviceArray<Slot> rows, from;
  DeviceArray<float> weights;
  DeviceArray<Slot> counts, places;
};

SortedEdges sort_edges(const DeviceEdges& edges, Slot rows, cudaStream_t stream) {
  const FromPool pool{stream, stream};
  const std::uint64_t count = edges.rows.size();
  SortedEdges sorted{DeviceArray<Slot>(count, pool), DeviceArray<Slot>(count, pool),
                     DeviceArray<float>(edges.weights.size(), pool),
                     DeviceArray<Slot>(edges.counts.size(), pool),
                     DeviceArray<Slot>(edges.places.size(), pool)};
  DeviceArray<Slot> numbers(count, pool), order(count, pool);
  count_up(numbers.data(), count, stream);
  // One bit more than rows have, if need be, so that kNoRow is behind all of them.
  const int bits = std::max(1, static_cast<int>(std::bit_width(rows)));
  with_scratch("sorting edges by row", pool, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, edges.rows.data(), sorted.rows.data(),
                                           numbers.data(), order.data(),
                                           static_cast<std::int64_t>(count), 0, bits, stream);
  });
  const auto arrays = [](const auto& of) {
    return EdgeArrays{nullptr, writable(of.from), writable(of.weights), writable(of.counts),
                      writable(of.places)};
  };
  permute_kernel<<<blocks_of_items(count), kThreadsOfItems, 0, stream>>>(
      order.data(), count, arrays(edges), arrays(sorted));
  check_cuda(cudaGetLastError(), "sorting edges by row");
  return sorted;
}

// Finds the rows that have edges: sums.rows and, in `starts`, their first edges and the end.
void find_rows(const SortedEdges& sorted, std::span<const Slot> bases, DeviceRowSums& sums,
               DeviceArray<EdgeOffset>& starts, cudaStream_t stream) {
  const FromPool pool{stream, stream};
  const std::uint64_t count = sorted.rows.size();
  DeviceArray<std::uint8_t> first(count, pool);
  DeviceArray<std::uint64_t> found(1 + bases.size(), pool);
  DeviceArray<Slot> bases_there(bases.size(), pool);
  mark_kernel<<<blocks_of_items(count), kThreadsOfItems, 0, stream>>>(sorted.rows.data(), count,
                                                                      first.data());
  with_scratch("finding rows", pool, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, thrust::counting_iterator<EdgeOffset>(0),
                                      first.data(), starts.data(), found.data(),
                                      static_cast<std::int64_t>(count), stream);
  });
  rows_kernel<<<blocks_of_items(count + 1), kThreadsOfItems, 0, stream>>>(
      sorted.rows.data(), count, found.data(), starts.data(), sums.rows.data());
  check_cuda(cudaMemcpyAsync(bases_there.data(), bases.data(), bases.size_bytes(),
                             cudaMemcpyHostToDevice, stream),
             "finding rows");
  tables_kernel<<<blocks_of_items(bases.size()), kThreadsOfItems, 0, stream>>>(
      sums.rows.data(), bases_there.data(), bases.size(), found.data());
  std::vector<std::uint64_t> here(found.size());
  check_cuda(cudaMemcpyAsync(here.data(), found.data(), here.size() * sizeof(here[0]),
                             cudaMemcpyDeviceToHost, stream),
             "finding rows");
  check_cuda(cudaStreamSynchronize(stream), "finding rows");
  sums.count = here[0];
  sums.starts.assign(here.begin() + 1, here.end());
}

// Edges in the order of rows, and the rows that have any.
struct RowsOfEdges {
  SortedEdges sorted;
  DeviceArray<EdgeOffset> starts;  // by row, and the end: its first edge
  DeviceRowSums sums;
};

// There is at least one edge.
RowsOfEdges rows_of_edges(const DeviceEdges& edges, std::span<const Slot> bases,
                          cudaStream_t stream) {
  const std::uint64_t count = edges.rows.size();
  require<DoesNotFitError>(count < kNoRow, "{} ids in a batch are too many for one GPU", count);
  const FromPool pool{stream, stream};
  RowsOfEdges found{sort_edges(edges, bases.back(), stream),
                    DeviceArray<EdgeOffset>(count + 1, pool),
                    {.starts = {}, .rows = DeviceArray<Slot>(count, pool)}};
  find_rows(found.sorted, bases, found.sums, found.starts, stream);
  return found;
}

}  // namespace

void write_edges(const DevicePieces& pieces, const DeviceBags& bags, const EdgeTable* tables,
                 const DeviceEdges& to, cudaStream_t stream) {
  if (bags.per_table == 0) return;
  const EdgeArrays arrays{writable(to.rows), writable(to.from), writable(to.weights), nullptr,
                          writable(to.places)};
  write_kernel<<<blocks_of_items(pieces.tables * bags.per_table * kBagLanes), kThreadsOfItems, 0,
                 stream>>>(pieces, bags, tables, arrays);
  check_cuda(cudaGetLastError(), "edges of bags");
}

void gather_gradients(const DevicePieces& pieces, const DeviceBags& bags, const EdgeTable* tables,
                      const BagGradientsThere& gradients, const GatheredGradients& to,
                      cudaStream_t stream) {
  if (bags.per_table == 0) return;
  gather_kernel<<<blocks_of_items(pieces.tables * bags.per_table * kWarp), kThreadsOfItems, 0,
                  stream>>>(pieces, bags, tables, gradients, to);
  check_cuda(cudaGetLastError(), "gradients of bags");
}

DeviceRowSums sum_by_row(const DeviceEdges& edges, std::span<const Slot> bases,
                         const GradientRows& gradients,
                         const std::function<void*(std::uint64_t bytes)>& room, Frequency frequency,
                         cudaStream_t stream) {
  if (edges.rows.size() == 0) return {.starts = std::vector<std::uint64_t>(bases.size())};
  const FromPool pool{stream, stream};
  RowsOfEdges found = rows_of_edges(edges, bases, stream);
  const SortedEdges& sorted = found.sorted;
  const DeviceArray<EdgeOffset>& starts = found.starts;
  DeviceRowSums sums = std::move(found.sums);
  if (sums.count == 0) return sums;
  sums.values = static_cast<float*>(room(sums.count * gradients.columns * sizeof(float)));
  DeviceArray<float> scale;
  if (frequency != Frequency::ignored) {
    sums.ids = DeviceArray<Slot>(sums.count, pool);
    scale = DeviceArray<float>(sums.count, pool);
    count_kernel<<<blocks_of_items(sums.count), kThreadsOfItems, 0, stream>>>(
        starts.data(), writable(sorted.counts), sums.count, sums.ids.data(), scale.data());
  }
  RowGroupOptions options{.most = kFixedGroup};
  options.pool = pool;
  const RowGroups groups(starts.data(), starts.data() + 1, sums.count, options, stream);
  if (edges.places.size() > 0) {
    const DeviceArray<float> parts(groups.partial_sums() * gradients.columns, pool);
    sum_maxima({.groups = groups,
                .from = sorted.from.data(),
                .places = sorted.places.data(),
                .gradients = gradients,
                .y = sums.values,
                .parts = writable(parts)},
               stream);
    return sums;
  }
  DeviceArray<float> scratch(spmm_scratch(groups, gradients.columns), pool);
  spmm({.groups = &groups,
        .columns = sorted.from.data(),
        .weights = writable(sorted.weights),
        .x = {gradients.at, DType::f32, gradients.stride},
        .x_rows = gradients.rows,
        .width = gradients.columns,
        .y = {sums.values, DType::f32, gradients.columns},
        .row_scale = frequency == Frequency::divided ? scale.data() : nullptr,
        .partial_sums = scratch.data(),
        .fixed_order = true},
       stream);
  return sums;
}

DeviceRowSums distinct_rows(const DeviceEdges& edges, std::span<const Slot> bases,
                            cudaStream_t stream) {
  if (edges.rows.size() == 0) return {.starts = std::vector<std::uint64_t>(bases.size())};
  return std::move(rows_of_edges(edges, bases, stream).sums);
}

void count_up(Slot* numbers, std::uint64_t count, cudaStream_t stream) {
  if (count == 0) return;
  number_kernel<<<blocks_of_items(count), kThreadsOfItems, 0, stream>>>(numbers, count);
  check_cuda(cudaGetLastError(), "numbers");
}

void rows_from(const Slot* rows, std::uint64_t count, Slot base, std::int64_t* out,
               cudaStream_t stream) {
  if (count == 0) return;
  from_kernel<<<blocks_of_items(count), kThreadsOfItems, 0, stream>>>(rows, count, base, out);
  check_cuda(cudaGetLastError(), "rows with gradients");
}

}  // namespace plait
