// The even cut of a CSR for narrow sums: tiles of equally many items, where an item is an edge or
// the end of a row (the merge path of Merrill and Garland, "Merge-based parallel sparse
// matrix-vector multiplication", SC 2016). A hub, many short rows and many empty rows are all the
// same work, and no row needs a record of its own beside its offset.
//
// The items are in the order of a walk through the matrix: the edges of row 0, the end of row 0,
// the edges of row 1, and so on. The end of row r is item end_r + r, where end_r is the number of
// edges up to it.
//
// A row that lies in several tiles is summed in parts. Tile t has two numbers for parts: 2 t for
// its first row, if that began in an earlier tile, and 2 t + 1 for its last row, if that goes on.
// So the parts of a row that begins in tile a and ends in tile b are numbers 2 a + 1 to 2 b. Of a
// tile in which no row ends, part 2 t is 0 and part 2 t + 1 is its sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/base/host_device.h"
#include "plait/base/ids.h"
#include "plait/kernels/row_cut.h"
#include "plait/machine/machine.h"

namespace plait {

// The widest sums that are cut evenly: above, a row of x takes more than one load of 16 bytes.
inline constexpr std::uint64_t kEvenWidth = 4;
// A tile is the work of one block. An odd number of items per thread keeps the threads that walk
// through shared memory out of each other's banks.
inline constexpr int kEvenThreads = 256, kEvenItems = 7;
inline constexpr std::uint32_t kEvenTile = kEvenThreads * kEvenItems;

// Where a tile begins: before `edge`, in row() or before it.
struct EvenTile {
  static constexpr std::uint32_t kCut = 0x80000000u;

  EdgeOffset edge;
  std::uint32_t row_and_cut;

  PLAIT_HOST_DEVICE std::uint32_t row() const { return row_and_cut & ~kCut; }
  // Tells whether edges of the row lie in an earlier tile.
  PLAIT_HOST_DEVICE bool cut() const { return (row_and_cut & kCut) != 0; }
};

// Returns the tiles of a matrix.
constexpr std::uint64_t even_tiles(EdgeOffset edges, std::uint64_t rows) {
  return (edges + rows + kEvenTile - 1) / kEvenTile;
}

// Returns how many rows end among the first `items` items. end_of(r) is the number of edges up to
// the end of row r, for r below `rows`. Int: any integer type that holds the number of items.
template <class Int, class EndOf>
PLAIT_HOST_DEVICE Int rows_before(Int items, Int rows, Int edges, const EndOf& end_of) {
  Int low = items > edges ? items - edges : 0, high = items < rows ? items : rows;
  while (low < high) {
    const Int middle = low + (high - low) / 2;
    if (end_of(middle) + middle < items)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Returns where tile `tile` of a CSR begins. `offsets`: of `rows` rows, rows + 1 numbers.
PLAIT_HOST_DEVICE inline EvenTile even_tile(const EdgeOffset* offsets, std::uint64_t rows,
                                            EdgeOffset edges, std::uint64_t tile) {
  const EdgeOffset base = offsets[0];
  const std::uint64_t item = tile * kEvenTile < edges + rows ? tile * kEvenTile : edges + rows;
  const std::uint64_t row =
      rows_before(item, rows, edges, [=](std::uint64_t r) { return offsets[r + 1] - base; });
  const EdgeOffset edge = base + item - row;
  const bool cut = row < rows && edge > offsets[row];
  return {edge, static_cast<std::uint32_t>(row) | (cut ? EvenTile::kCut : 0)};
}

// The rows that lie in several tiles, hubs last; their parts are numbered as above.
struct EvenCutRows {
  std::vector<CutRow> rows;
  std::uint32_t hubs = 0;
};
// `tiles`: of all tiles, and behind them the end of the matrix.
EvenCutRows cut_rows_of(std::span<const EvenTile> tiles);

// Tells whether narrow sums of such a matrix may be cut evenly: long rows gain more from the order
// of clusters.
inline bool suits_even_cut(EdgeOffset edges, std::uint64_t rows) {
  return rows > 0 && edges <= rows * EdgeOffset{machine().even_row};
}

// The lengths of a matrix' rows.
struct RowLengths {
  EdgeOffset edges = 0;
  std::uint64_t squares = 0;  // of the rows' numbers of edges, in all
  std::uint64_t rows = 0;
};
// Tells whether narrow sums of a matrix that suits are faster by the even cut than by groups. They
// are not if the launches of three kernels take longer than the work, or if all rows have about the
// same number of edges, more than three, which leaves nothing to even out: then the mean square is
// hardly more than the square of the mean.
inline bool gains_by_even_cut(const RowLengths& of) {
  const double rows = static_cast<double>(of.rows), edges = static_cast<double>(of.edges);
  const bool alike = static_cast<double>(of.squares) * rows <= 1.02 * edges * edges;
  return of.edges >= machine().even_edges && (edges <= 3 * rows || !alike);
}

}  // namespace plait
