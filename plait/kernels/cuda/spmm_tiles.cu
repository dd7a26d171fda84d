// Narrow sums. A record per group (16 bytes) and its target's scattered write (a sector of 32
// bytes) cost more than the edges of a row of two to thirty: a star of n leaves moves 36 n bytes in
// groups. Here each offset (8 bytes), column and weight is read once, in order, and y is written in
// order. Bytes that must move, at width w: 8 per row, 4 per edge (8 with weights), 4 w per row that
// is written, and 4 w per row of x that is read for the first time: 24 n on the star of n leaves,
// 120 MB at 5 million, which takes 0.04 ms at the 3 TB/s of an H100's memory.
//
// Where columns are scattered, every edge besides reads one sector of x, from the L2 cache if x
// fits there: a multiprocessor finds about one such sector per cycle, so that 67 million edges
// (R-MAT, 2^22 vertices) take 0.3 ms, whatever the design, and the memory has the 4 bytes of a
// column per edge hidden behind it. What a design can lose is the wait of one block for its longest
// row. So blocks get equally many items (even_cut.h), in three steps:
//
//   1. Threads load the tile's offsets, columns and rows of x, kEvenItems each, all under way at
//      once, and put products and row ends into shared memory. Neighbouring threads take
//      neighbouring edges.
//   2. Each thread walks through kEvenItems neighbouring items, from where a binary search in
//      shared memory puts it, and adds products up row by row.
//   3. A scan over the block brings each thread the sum of its first row from the threads before
//      it. Sums go to y through shared memory, so that neighbouring threads write neighbouring
//      rows.
//
// A tile without the end of a row, inside of a hub, leaves out the second step. Parts of rows that
// lie in several tiles are added afterwards, as those of groups are. All orders of addition follow
// from the matrix: the same bits each time.
#include <climits>
#include <cub/block/block_scan.cuh>

#include "plait/kernels/cuda/spmm_partial_sums.cuh"
#include "plait/kernels/cuda/spmm_tiles.cuh"

namespace plait {
namespace {

// A row of x as it is loaded: at once if kWhole, with one element of padding if kWidth is 3.
template <class X, int kWidth, bool kWhole>
struct NarrowRow {
  static constexpr int kRead = kWhole && kWidth == 3 ? 4 : kWidth;
  using Bits = std::conditional_t<
      sizeof(X) * kRead == 16, uint4,
      std::conditional_t<sizeof(X) * kRead == 8, uint2,
                         std::conditional_t<sizeof(X) * kRead == 4, unsigned, unsigned short>>>;
  struct Elements {
    X value[kRead];
  };
  Elements row = {};

  __device__ void load(const X* from) {
    if constexpr (kWhole) {
      row = __builtin_bit_cast(Elements, __ldg(reinterpret_cast<const Bits*>(from)));
    } else {
#pragma unroll
      for (int c = 0; c < kRead; ++c) row.value[c] = __ldg(from + c);
    }
  }
};

// The sum of items behind the last end of a row, and whether there is such an end.
template <int kWidth>
struct OpenSum {
  float sum[kWidth] = {};
  bool ended = false;
};
struct Join {
  template <int kWidth>
  __device__ OpenSum<kWidth> operator()(const OpenSum<kWidth>& a, const OpenSum<kWidth>& b) const {
    OpenSum<kWidth> joined{.ended = a.ended || b.ended};
#pragma unroll
    for (int c = 0; c < kWidth; ++c) joined.sum[c] = b.ended ? b.sum[c] : a.sum[c] + b.sum[c];
    return joined;
  }
};

// One tile of a matrix.
struct Tile {
  EvenTile first;
  int rows, edges;  // that end in it, and that lie in it

  __device__ Tile(const EvenTile& begin, const EvenTile& end)
      : first(begin),
        rows(static_cast<int>(end.row() - begin.row())),
        edges(static_cast<int>(end.edge - begin.edge)) {}
};

// The products of a thread's edges. Its edge k is edge kEvenThreads x k + threadIdx.x of the tile.
template <class X, int kWidth, bool kWeighted, bool kWhole>
struct Products {
  NarrowRow<X, kWidth, kWhole> rows[kEvenItems];
  float weights[kEvenItems];

  __device__ float of(int k, int column) const {
    const float value = to_float(rows[k].row.value[column]);
    return kWeighted ? weights[k] * value : value;
  }
};

// Loads a thread's products, and its share of the ends of rows, in edges of the tile.
template <class X, int kWidth, bool kWeighted, bool kWhole>
__device__ __forceinline__ void load_tile(const SpmmView& a, const EdgeOffset* offsets,
                                          const Tile& tile,
                                          Products<X, kWidth, kWeighted, kWhole>& products,
                                          int (&ends)[kEvenItems]) {
  const X* const x = static_cast<const X*>(a.x);
  const Slot* const columns = a.columns + tile.first.edge;
  const EdgeOffset* const end_of = offsets + tile.first.row() + 1;
  Slot column[kEvenItems];
#pragma unroll
  for (int k = 0; k < kEvenItems; ++k) {
    const int i = k * kEvenThreads + static_cast<int>(threadIdx.x);
    column[k] = i < tile.edges ? __ldcs(columns + i) : 0;
    if constexpr (kWeighted)
      products.weights[k] = i < tile.edges ? __ldcs(a.weights + tile.first.edge + i) : 0;
    ends[k] = i < tile.rows ? static_cast<int>(__ldcs(end_of + i) - tile.first.edge) : 0;
  }
#pragma unroll
  for (int k = 0; k < kEvenItems; ++k)
    if (k * kEvenThreads + static_cast<int>(threadIdx.x) < tile.edges)
      products.rows[k].load(x + std::uint64_t{column[k]} * a.x_stride);
}

// The results of a thread's walk: the sums of the rows that ended, in order. The first sum lacks
// the part that earlier threads have.
template <int kWidth>
struct Walk {
  int first_row = 0;
  unsigned ended = 0;  // bit k: a row ended at item k
  float sums[kEvenItems][kWidth];
  OpenSum<kWidth> open;
};

// Walks through a thread's items. `ends`: of the tile's rows, and INT_MAX behind them; `products`:
// column by column.
template <int kWidth>
__device__ __forceinline__ void walk(const Tile& tile, const int* ends, const float* products,
                                     Walk<kWidth>& found) {
  const int items = tile.rows + tile.edges;
  const int begin = min(static_cast<int>(threadIdx.x) * kEvenItems, items);
  int row = rows_before(begin, tile.rows, tile.edges, [=](int r) { return ends[r]; });
  int edge = begin - row;
  found.first_row = row;
#pragma unroll
  for (int k = 0; k < kEvenItems; ++k) {
    if (begin + k >= items) break;
    if (edge < ends[row]) {
#pragma unroll
      for (int c = 0; c < kWidth; ++c) found.open.sum[c] += products[c * tile.edges + edge];
      ++edge;
    } else {
#pragma unroll
      for (int c = 0; c < kWidth; ++c) found.sums[k][c] = found.open.sum[c], found.open.sum[c] = 0;
      found.ended |= 1u << k;
      ++row;
    }
  }
  found.open.ended = found.ended != 0;
}

// Puts the sums of rows that ended into shared memory, row by row. `before`: of earlier threads.
template <int kWidth>
__device__ __forceinline__ void collect(const Walk<kWidth>& found, const OpenSum<kWidth>& before,
                                        float* sums) {
  int row = found.first_row;
#pragma unroll
  for (int k = 0; k < kEvenItems; ++k) {
    if ((found.ended >> k & 1) == 0) continue;
#pragma unroll
    for (int c = 0; c < kWidth; ++c)
      sums[row * kWidth + c] =
          row == found.first_row ? before.sum[c] + found.sums[k][c] : found.sums[k][c];
    ++row;
  }
}

// Writes the tile's sums: to y, but those of its first row if that began in an earlier tile.
template <class Y, int kWidth>
__device__ __forceinline__ void write_rows(const SpmmView& a, const Tile& tile, const float* sums) {
  for (int i = static_cast<int>(threadIdx.x); i < tile.rows * kWidth; i += kEvenThreads) {
    const int row = i / kWidth, column = i % kWidth;
    if (row == 0 && tile.first.cut()) {
      a.partial_sums[std::uint64_t{2} * blockIdx.x * a.partial_stride + column] = sums[i];
      continue;
    }
    const std::uint64_t number = tile.first.row() + static_cast<unsigned>(row);
    const float sum[1] = {a.row_scale != nullptr ? sums[i] * a.row_scale[number] : sums[i]};
    store(static_cast<Y*>(a.y) + number * a.y_stride + column, sum, 0, 1, a.accumulate);
  }
}

// Writes the parts of a tile's last row, and of its first row if none ends here.
template <int kWidth>
__device__ __forceinline__ void write_parts(const SpmmView& a, const Tile& tile,
                                            const OpenSum<kWidth>& open) {
  if (threadIdx.x != 0) return;
  float* const parts = a.partial_sums + std::uint64_t{2} * blockIdx.x * a.partial_stride;
#pragma unroll
  for (int c = 0; c < kWidth; ++c) {
    if (tile.rows == 0) parts[c] = 0;
    parts[a.partial_stride + c] = open.sum[c];
  }
}

// Blocks per multiprocessor that leave enough registers for the loads under way.
template <int kWidth, bool kWeighted>
constexpr int kTilesAtOnce = kWidth > 2  ? 4
                             : kWeighted ? 5
                                         : 6;

// One block per tile.
template <class X, class Y, int kWidth, bool kWeighted, bool kWhole>
__global__ void __launch_bounds__(kEvenThreads, (kTilesAtOnce<kWidth, kWeighted>))
    sum_tiles(const __grid_constant__ SpmmView a, const EdgeOffset* offsets,
              const EvenTile* tiles) {
  let_next_kernel_start();  // add_partial_sums() may get ready
  using Scan = cub::BlockScan<OpenSum<kWidth>, kEvenThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  // The ends of rows and the products; then the sums.
  __shared__ union {
    int ends[kEvenTile + 1];
    float values[kEvenTile * kWidth + 1];
  } shared;
  __shared__ typename Scan::TempStorage scan;
  const Tile tile(tiles[blockIdx.x], tiles[blockIdx.x + 1]);
  Products<X, kWidth, kWeighted, kWhole> products;
  int ends[kEvenItems];
  load_tile(a, offsets, tile, products, ends);

  Walk<kWidth> found;
  if (tile.rows == 0) {
#pragma unroll
    for (int k = 0; k < kEvenItems; ++k)
      if (k * kEvenThreads + static_cast<int>(threadIdx.x) < tile.edges)
#pragma unroll
        for (int c = 0; c < kWidth; ++c) found.open.sum[c] += products.of(k, c);
  } else {
    float* const staged = shared.values + tile.rows + 1;
#pragma unroll
    for (int k = 0; k < kEvenItems; ++k) {
      const int i = k * kEvenThreads + static_cast<int>(threadIdx.x);
      if (i < tile.rows) shared.ends[i] = ends[k];
      if (i < tile.edges)
#pragma unroll
        for (int c = 0; c < kWidth; ++c) staged[c * tile.edges + i] = products.of(k, c);
    }
    if (threadIdx.x == 0) shared.ends[tile.rows] = INT_MAX;
    __syncthreads();
    walk(tile, shared.ends, staged, found);
  }
  OpenSum<kWidth> before, open;
  Scan(scan).ExclusiveScan(found.open, before, OpenSum<kWidth>{}, Join{}, open);
  write_parts(a, tile, open);
  if (tile.rows == 0) return;
  __syncthreads();  // the products have been read
  collect(found, before, shared.values);
  __syncthreads();
  write_rows<Y, kWidth>(a, tile, shared.values);
}

// Tells whether each row of x can be read at once, with its padding.
template <class X, int kWidth>
bool reads_whole_rows(const SpmmView& view) {
  constexpr std::uint64_t kRead = NarrowRow<X, kWidth, true>::kRead;
  return kRead <= view.x_stride && view.x_stride % kRead == 0 &&
         reinterpret_cast<std::uintptr_t>(view.x) % (kRead * sizeof(X)) == 0;
}

template <class X, class Y, int kWidth, bool kWeighted>
void launch(const SpmmView& view, const EvenCut& cut, cudaStream_t stream) {
  if constexpr (kWidth > 1)
    if (!reads_whole_rows<X, kWidth>(view)) {
      sum_tiles<X, Y, kWidth, kWeighted, false>
          <<<cut.size(), kEvenThreads, 0, stream>>>(view, cut.offsets(), cut.tiles());
      return;
    }
  sum_tiles<X, Y, kWidth, kWeighted, true>
      <<<cut.size(), kEvenThreads, 0, stream>>>(view, cut.offsets(), cut.tiles());
}

// Calls use(std::integral_constant<int, width>{}).
template <int kWidth = 1, class Use>
void with_width(std::uint64_t width, Use&& use) {
  if constexpr (kWidth < static_cast<int>(kEvenWidth))
    if (width > kWidth) return with_width<kWidth + 1>(width, use);
  use(std::integral_constant<int, kWidth>{});
}

}  // namespace

void spmm_by_tiles(const SpmmView& view, const EvenCut& cut, DType x, DType y,
                   cudaStream_t stream) {
  with_types(x, y, [&]<class X, class Y>(X, Y) {
    with_width(view.width, [&](auto width) {
      view.weights != nullptr ? launch<X, Y, width(), true>(view, cut, stream)
                              : launch<X, Y, width(), false>(view, cut, stream);
    });
  });
  check_cuda(cudaGetLastError(), "spmm");
  add_partial_sums(view, cut_rows_of(cut), y, stream);
}

}  // namespace plait
