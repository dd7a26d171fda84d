// SpMM on the CPU.
//
// A product reads a row of x for every edge, at random, and adds it: there is almost nothing to
// compute, so speed depends on how fast rows come from the caches and from memory.
//
//   Slices      x is worked through in slices of 32 columns: 128 bytes per row, two cache lines,
//               four registers. A slice of x may stay in a cache where the whole does not, and
//               slices of four lines per row were measurably slower. The price, reading the column
//               numbers again for each slice, is 4 bytes for 128.
//   Look-ahead  While a row is added, the row 64 cache lines of work further on is fetched, and
//               into L2 only: the first-level cache can wait for far fewer lines at once, so where
//               x lies in memory this alone nearly doubles the speed over fetching into L1.
//   Balance     Tasks of about equal edges, long rows in pieces (row_tasks.h). An element of y is
//               one chain of additions in the order of the edges (in a long row, one per piece):
//               its bits depend neither on the threads nor on the width of the registers.
#include "plait/kernels/spmm.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/kernels/cpu/row_tasks.h"
#include "plait/kernels/float8.h"

namespace plait {
namespace {

constexpr std::uint64_t kSpmmSliceVectors = 4;
constexpr std::uint64_t kSliceWidth = kSpmmSliceVectors * kFloat8;

// Columns [first, first + width) of x and y; width is at most kSliceWidth.
struct Slice {
  std::uint64_t first;
  std::uint64_t width;
};

// Runs of edges begin[i] .. end[i], the sum of each to be written to y + i * stride.
struct Segments {
  const EdgeOffset* begin;
  const EdgeOffset* end;
  std::uint64_t count;
  float* y;
  std::uint64_t stride;
  const float* scale;  // one per segment, or null
};

// Rows of x in one place. `Aligned`: all of them begin on a cache line.
template <bool Aligned>
class PlainRows {
 public:
  static constexpr bool kAligned = Aligned;
  // Without rows there may be no array.
  PlainRows(const RowSource& x, std::uint64_t first)
      : base_(x.base == nullptr ? nullptr : x.base + first), stride_(x.stride) {}
  const float* operator()(Slot slot) const { return base_ + slot * stride_; }

 private:
  const float* base_;
  std::uint64_t stride_;
};

// Rows of numbers of 16 bits in one place.
template <class T>
class NarrowRows {
 public:
  static constexpr bool kAligned = false;
  NarrowRows(const RowSource& x, std::uint64_t first)
      : base_(x.base == nullptr ? nullptr : reinterpret_cast<const T*>(x.base) + first),
        stride_(x.stride) {}
  const T* operator()(Slot slot) const { return base_ + slot * stride_; }

 private:
  const T* base_;
  std::uint64_t stride_;
};

// Own rows stand in one place, halo rows where their owners have them.
class TranslatedRows {
 public:
  static constexpr bool kAligned = false;
  TranslatedRows(const RowSource& x, std::uint64_t first) : x_(x), first_(first) {}
  const float* operator()(Slot slot) const { return x_.row(slot) + first_; }

 private:
  RowSource x_;
  std::uint64_t first_;
};

// Fetches the cache lines of one slice of a row into L2. A row that does not begin on a line may
// end on one more.
template <std::size_t Lines, bool Aligned, class T>
[[gnu::always_inline]] inline void prefetch(const T* row, std::uint64_t width) {
  unrolled<Lines>([&](auto line) {
    __builtin_prefetch(row + line * (kCacheLine / sizeof(T)), /*write=*/0, /*locality=*/2);
  });
  if constexpr (!Aligned) __builtin_prefetch(row + width - 1, 0, 2);
}

// Makes the sums of all segments of at most kPieceEdges edges, for one slice of `Vectors`
// registers. The last register is used in part if `Partial`.
template <std::size_t Vectors, bool Partial, bool Weighted, class Rows>
void sum_segments(const SpmmArgs& args, const Segments& segments, const Slice& slice) {
  using T = std::remove_cvref_t<decltype(*std::declval<Rows>()(0))>;
  constexpr std::size_t kLines = (Vectors * kFloat8 * sizeof(T) + kCacheLine - 1) / kCacheLine;
  constexpr std::size_t kWhole = Partial ? Vectors - 1 : Vectors;
  const FirstLanes part(static_cast<int>(slice.width - (Vectors - 1) * kFloat8));
  const Rows row_of(args.x, slice.first);
  const Slot* columns = args.columns;
  std::array<Float8, Vectors> sum;

  const auto fetch = [&](EdgeOffset e) __attribute__((always_inline)) {
    prefetch<kLines, Rows::kAligned>(row_of(columns[e]), slice.width);
  };
  const auto add = [&](EdgeOffset e) __attribute__((always_inline)) {
    const T* x = row_of(columns[e]);
    const auto add_vector = [&](std::size_t v, Float8 value) __attribute__((always_inline)) {
      if constexpr (Weighted) {
        sum[v] = fma(Float8::all(args.weights[e]), value, sum[v]);
      } else {
        sum[v] = sum[v] + value;
      }
    };
    unrolled<kWhole>([&](auto v) { add_vector(v, Float8::load(x + v * kFloat8)); });
    if constexpr (Partial) add_vector(kWhole, part.load(x + kWhole * kFloat8));
  };

  LookAhead ahead(segments.begin, segments.end, segments.count);
  for (std::uint64_t i = 0; i < kLinesAhead / kLines && ahead.available() > 0; ++i) {
    fetch(ahead.edge());
    ahead.advance(1);
  }
  for (std::uint64_t i = 0; i < segments.count; ++i) {
    EdgeOffset e = segments.begin[i];
    const EdgeOffset end = segments.end[i];
    if (end - e > kPieceEdges) continue;
    unrolled<Vectors>([&](auto v) { sum[v] = Float8::all(0.0f); });
    while (e < end) {
      const EdgeOffset together = std::min(end - e, ahead.available());
      const EdgeOffset distance = ahead.edge() - e;
      if (together == 0) {  // nothing is left to fetch
        for (; e < end; ++e) add(e);
        break;
      }
      ahead.advance(together);
      for (const EdgeOffset stop = e + together; e < stop; ++e) {
        fetch(e + distance);
        add(e);
      }
    }
    if (segments.scale) {
      const Float8 scale = Float8::all(segments.scale[i]);
      unrolled<Vectors>([&](auto v) { sum[v] = sum[v] * scale; });
    }
    float* y = segments.y + i * segments.stride + slice.first;
    unrolled<kWhole>([&](auto v) { sum[v].store(y + v * kFloat8); });
    if constexpr (Partial) part.store(y + kWhole * kFloat8, sum[kWhole]);
  }
}

using Kernel = void (*)(const SpmmArgs&, const Segments&, const Slice&);

using RowForms = std::tuple<PlainRows<false>, PlainRows<true>, TranslatedRows, NarrowRows<BFloat16>,
                            NarrowRows<Float16>>;

// Every form of sum_segments. In the index, bits 0-1 are the registers less one, bit 2 tells
// partial, bit 3 weighted; the bits above choose one of RowForms.
template <std::size_t... I>
constexpr std::array<Kernel, sizeof...(I)> kernel_table(std::index_sequence<I...>) {
  return {sum_segments<I % 4 + 1, (I & 4) != 0, (I & 8) != 0,
                       std::tuple_element_t<I / 16, RowForms>>...};
}
constexpr auto kKernels =
    kernel_table(std::make_index_sequence<16 * std::tuple_size_v<RowForms>>{});

Kernel choose_kernel(const SpmmArgs& args, const Slice& slice) {
  const RowSource& x = args.x;
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(x.base) % kCacheLine == 0 && x.stride % kLineFloats == 0;
  const std::size_t rows = args.x_type == DType::f16    ? 4
                           : args.x_type == DType::bf16 ? 3
                           : x.peers                    ? 2
                           : aligned                    ? 1
                                                        : 0;
  const std::size_t vectors = (slice.width + kFloat8 - 1) / kFloat8;
  return kKernels[(vectors - 1) | (slice.width % kFloat8 ? 4u : 0u) | (args.weights ? 8u : 0u) |
                  rows << 4];
}

void sum_task(const SpmmArgs& args, const RowRange& rows, const Slice& slice) {
  const float* scale = args.row_scale ? args.row_scale + rows.begin : nullptr;
  const Segments segments{&args.begin[rows.begin], &args.end[rows.begin],
                          rows.end - rows.begin,   args.y + rows.begin * args.y_stride,
                          args.y_stride,           scale};
  choose_kernel(args, slice)(args, segments, slice);
}

void sum_piece(const SpmmArgs& args, const RowPiece& piece, float* sum, const Slice& slice) {
  const Segments segments{&piece.begin, &piece.end, 1, sum, 0, nullptr};
  choose_kernel(args, slice)(args, segments, slice);
}

// Adds the sums of the pieces of each long row into y, in order, for one slice.
void join_pieces(const SpmmArgs& args, const std::vector<RowPiece>& pieces, const float* sums,
                 const Slice& slice) {
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const std::uint64_t row = pieces[p].row;
    const bool first = p == 0 || pieces[p - 1].row != row;
    const bool last = p + 1 == pieces.size() || pieces[p + 1].row != row;
    const float scale = last && args.row_scale ? args.row_scale[row] : 1.0f;
    const float* sum = sums + p * args.width + slice.first;
    float* y = args.y + row * args.y_stride + slice.first;
    for (std::uint64_t j = 0; j < slice.width; ++j) y[j] = (first ? sum[j] : y[j] + sum[j]) * scale;
  }
}

Slice slice_at(std::uint64_t index, std::uint64_t width) {
  const std::uint64_t first = index * kSliceWidth;
  return {first, std::min(kSliceWidth, width - first)};
}

}  // namespace

void spmm(const SpmmArgs& args) {
  if (args.begin.empty() || args.width == 0) return;
  const RowTasks cut = cut_rows(args.begin, args.end);
  const std::size_t tasks = cut.tasks.size(), per_slice = tasks + cut.pieces.size();
  Buffer<float> piece_sums(cut.pieces.size() * args.width);

  const std::uint64_t slices = (args.width + kSliceWidth - 1) / kSliceWidth;
  parallel_for(slices * per_slice, [&](std::size_t item) {
    const Slice slice = slice_at(item / per_slice, args.width);
    const std::size_t i = item % per_slice;
    if (i < tasks) {
      sum_task(args, cut.tasks[i], slice);
    } else {
      sum_piece(args, cut.pieces[i - tasks], piece_sums.data() + (i - tasks) * args.width, slice);
    }
  });
  if (cut.pieces.empty()) return;
  parallel_for(slices, [&](std::size_t index) {
    join_pieces(args, cut.pieces, piece_sums.data(), slice_at(index, args.width));
  });
}

}  // namespace plait
