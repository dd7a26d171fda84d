// A thread has a pair, whose number it draws and searches in the arrays: about log2(rows) +
// log2(row) words at random.
//
// Pairs that are to differ are drawn by Floyd's algorithm (draw.h) for all numbers at once, as
// distinct.cuh does for one row: a hash table has the first i that drew each number, and each
// thread then follows the chain of its own numbers. Encoding of a slot: a number, or kEmpty, and
// the least i that drew it.
#include <bit>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/error.h"
#include "plait/sample/check.h"
#include "plait/sample/cuda/non_edges.h"

namespace plait {
namespace {

using Word = unsigned long long;
constexpr Word kEmpty = ~Word{0};

// The numbers that pairs of a draw have, before they are made distinct.
struct Numbers {
  NonEdgesView pairs;
  std::uint64_t count;
  bool replace, whole;  // whole: all pairs are taken
  Philox philox;

  __device__ std::uint64_t base() const { return pairs.count() - count; }
  __device__ std::uint64_t operator()(std::uint64_t i) const {
    if (whole) return i;
    return non_edge_number(philox, i, replace ? pairs.count() : base() + i + 1);
  }
};

struct FirstOfNumbers {
  Word* numbers;
  Word* firsts;
  std::uint64_t mask;

  __device__ std::uint64_t slot(std::uint64_t number) const {
    return number * 0x9E3779B97F4A7C15u >> 20 & mask;
  }
  __device__ void enter(std::uint64_t number, std::uint64_t i) const {
    for (std::uint64_t s = slot(number);; s = (s + 1) & mask) {
      const Word old = atomicCAS(numbers + s, kEmpty, Word{number});
      if (old != kEmpty && old != number) continue;
      atomicMin(firsts + s, Word{i});
      return;
    }
  }
  // Returns the first i that drew a number that has been entered.
  __device__ std::uint64_t find(std::uint64_t number) const {
    std::uint64_t s = slot(number);
    while (numbers[s] != number) s = (s + 1) & mask;
    return firsts[s];
  }
};

__global__ void enter_numbers(const Numbers number, const FirstOfNumbers table) {
  const std::uint64_t i = item_of_thread();
  if (i < number.count) table.enter(number(i), i);
}

// As settled() of distinct.cuh.
__device__ std::uint64_t distinct_number(const Numbers& number, const FirstOfNumbers& firsts,
                                         std::uint64_t i) {
  const std::uint64_t base = number.base(), own = number(i);
  std::uint64_t drawn = own;
  for (std::uint64_t at = i;;) {
    if (firsts.find(drawn) < at) return base + i;
    if (drawn < base || drawn - base >= at) return own;
    at = drawn - base;
    drawn = number(at);
  }
}

// `firsts.numbers` is null if numbers need not be made distinct.
__global__ void write_pairs(const Numbers number, const FirstOfNumbers firsts, std::uint64_t* rows,
                            std::uint64_t* columns) {
  const std::uint64_t i = item_of_thread();
  if (i >= number.count) return;
  const VertexPair pair =
      number.pairs.pair(firsts.numbers != nullptr ? distinct_number(number, firsts, i) : number(i));
  rows[i] = pair.row;
  columns[i] = pair.column;
}

// `bad`: the first place of a row that is out of range, and of one without pairs.
__global__ void write_columns(const NonEdgesView pairs, const Philox philox,
                              const std::uint64_t* rows, std::uint64_t count,
                              std::uint64_t* columns, Word* bad) {
  const std::uint64_t i = item_of_thread();
  if (i >= count) return;
  const std::uint64_t row = rows[i];
  if (row >= pairs.rows)
    atomicMin(bad, Word{i});
  else if (pairs.count(row) == 0)
    atomicMin(bad + 1, Word{i});
  else
    columns[i] = pairs.column(row, non_edge_number(philox, i, pairs.count(row)));
}

template <class T>
void fill_with_ones(DeviceArray<T>& array, cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(array.data(), 0xff, array.size() * sizeof(T), stream),
             "emptying a table");
}

}  // namespace

struct GpuNonEdges::Arrays {
  DeviceArray<std::uint64_t> before;
  DeviceArray<EdgeOffset> offsets;
  DeviceArray<std::uint32_t> excluded;
  NonEdgesView view;
  std::uint64_t all = 0;  // pairs
};

GpuNonEdges::GpuNonEdges(const NonEdges& pairs) {
  auto arrays = std::make_unique<Arrays>();
  arrays->view = pairs.view();
  NonEdgesView& view = arrays->view;
  arrays->before = DeviceArray<std::uint64_t>(std::span(view.before, view.rows + 1));
  arrays->offsets = DeviceArray<EdgeOffset>(std::span(view.offsets, view.rows + 1));
  arrays->excluded = DeviceArray<std::uint32_t>(std::span(view.excluded, pairs.excluded_count()));
  view.before = arrays->before.data(), view.offsets = arrays->offsets.data();
  view.excluded = arrays->excluded.data();
  arrays->all = pairs.count();
  arrays_ = std::move(arrays);
}
GpuNonEdges::~GpuNonEdges() = default;

void GpuNonEdges::draw(const Draw& draw, std::uint64_t* rows, std::uint64_t* columns,
                       void* stream) const {
  if (draw.count == 0) return;
  auto* const on = static_cast<cudaStream_t>(stream);
  const bool whole = !draw.replace && draw.count == arrays_->all;
  const Numbers numbers{arrays_->view, draw.count, draw.replace, whole, Philox(draw.key)};
  const unsigned blocks = blocks_of_items(draw.count);
  DeviceArray<Word> entered, firsts;
  FirstOfNumbers table{};
  if (!draw.replace && !whole) {
    const std::uint64_t slots = std::bit_ceil(2 * draw.count);
    entered = DeviceArray<Word>(slots);
    firsts = DeviceArray<Word>(slots);
    fill_with_ones(entered, on);
    fill_with_ones(firsts, on);
    table = {entered.data(), firsts.data(), slots - 1};
    enter_numbers<<<blocks, kThreadsOfItems, 0, on>>>(numbers, table);
  }
  write_pairs<<<blocks, kThreadsOfItems, 0, on>>>(numbers, table, rows, columns);
  check_cuda(cudaGetLastError(), "drawing pairs");
  if (entered.size() > 0) check_cuda(cudaStreamSynchronize(on), "drawing pairs");
}

void GpuNonEdges::draw_columns(const std::uint64_t* rows, std::uint64_t count, std::uint64_t key,
                               std::uint64_t* columns, void* stream) const {
  if (count == 0) return;
  auto* const on = static_cast<cudaStream_t>(stream);
  DeviceArray<Word> bad(2);
  fill_with_ones(bad, on);
  write_columns<<<blocks_of_items(count), kThreadsOfItems, 0, on>>>(
      arrays_->view, Philox(key), rows, count, columns, bad.data());
  check_cuda(cudaGetLastError(), "drawing pairs");
  check_cuda(cudaStreamSynchronize(on), "drawing pairs");
  const std::vector<Word> found = bad.to_host();
  const auto row_at = [&](Word place) {
    std::uint64_t row = 0;
    copy_to_host(&row, rows + place, sizeof(row));
    return row;
  };
  if (found[0] != kEmpty) throw_bad_id("source", found[0], row_at(found[0]), arrays_->view.rows);
  if (found[1] != kEmpty) throw_full_row(row_at(found[1]), arrays_->view.columns);
}

}  // namespace plait
