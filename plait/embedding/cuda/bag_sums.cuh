// Sums of the rows that bags name, by the owners of pieces of embedding tables, and the collection
// of sums by readers.
#pragma once

#include <span>
#include <vector>

#include "plait/embedding/cuda/bags.cuh"
#include "plait/embedding/embedding_layout.h"
#include "plait/embedding/embedding_rules.h"
#include "plait/embedding/piece_rows.h"

namespace plait {

// A table as the GPU of one rank sees it.
struct DevicePiece {
  const void* rows = nullptr;  // this rank's, `columns` apart
  std::uint64_t columns = 0;   // 0: this rank has none of it
  std::uint64_t first_column = 0;
  EmbeddingSplit split = EmbeddingSplit::table;
  int owner = 0;
  std::uint32_t divided = 0;  // the number of the table among those of split `rows`
  std::uint64_t dealt = 0;    // of those: as StoredRows

  bool operator==(const DevicePiece&) const = default;
};

// The tables, by number, in memory of the GPU.
struct DevicePieces {
  const DevicePiece* at = nullptr;
  std::uint64_t tables = 0, width = 0;
  int rank = 0, ranks = 1;
  int vec = 1;  // numbers of a row that a lane takes; pieces, rows and sums have multiples of it
  BagMode mode = BagMode::sum;
  DType type = DType::f32;  // of the numbers of rows
};

// The memory for sums of a reader's bags. `whole`: samples x tables x width, for pieces that have
// all rows of a sum. `parts`: rows of `width`; the sum of rank r, bag b and divided table d is row
// (d * ranks + r) * per_table + b, which is written only if the bag names a row of the rank.
struct BagSums {
  float* whole = nullptr;
  float* parts = nullptr;
  // In mode max, likewise: the places of the maxima (embedding/bag_maxima.h).
  Slot* whole_places = nullptr;
  Slot* part_places = nullptr;
};

// The bags of one table of one reader, to be summed from this rank's piece. A group of `lanes`
// lanes takes `bags_of_group` bags that stand one behind the other, fewer than it has lanes.
struct BagWork {
  DeviceBags bags;
  BagSums to;
  std::uint32_t table = 0;
  std::uint32_t lanes = 0, bags_of_group = 0;
  std::uint32_t first_block = 0;  // of the grid of all works
};
// All sums of a step by this rank, in the order in which they begin.
class BagWorks {
 public:
  // Adds the bags of table t, with so many ids; the piece has columns. vec: columns per lane.
  void add(const DeviceBags& bags, const BagSums& to, std::size_t t, std::uint64_t ids,
           std::uint64_t columns, int vec);
  std::span<const BagWork> works() const { return works_; }
  std::uint32_t blocks() const { return blocks_; }

 private:
  std::vector<BagWork> works_;
  std::uint32_t blocks_ = 0;
};
// Returns the most numbers of so many bytes that a lane takes of a row: as many as 16 bytes hold.
// It may take four numbers, or one, instead.
constexpr int most_bag_columns(std::size_t bytes) { return static_cast<int>(16 / bytes); }
// Enqueues these sums, but not maxima. works_there: a copy of works() in memory of the GPU.
void sum_bags(const DevicePieces& pieces, const BagWorks& works, const BagWork* works_there,
              cudaStream_t stream);
// Enqueues the maxima of a reader's bags from this rank's pieces; maxima of replicated tables only
// if the reader is this rank (`own`).
void take_maxima(const DevicePieces& pieces, const DeviceBags& bags, bool own, const BagSums& to,
                 cudaStream_t stream);
// Enqueues the collection of the sums that others have made for this rank: copies the columns of
// `from.whole` that others have, and adds `from.parts` in the order of ranks, to `out`, which has
// the rest and no parts.
void collect_bags(const DevicePieces& pieces, const DeviceBags& bags, const BagSums& from,
                  const BagSums& out, cudaStream_t stream);

// Returns the place of a row of a divided table.
PLAIT_HOST_DEVICE inline RowPlace place_in(const DevicePieces& pieces, const DevicePiece& piece,
                                           std::uint64_t id) {
  return dealt_place(id, piece.dealt, static_cast<std::uint64_t>(pieces.ranks));
}

// Returns the row of an id in this rank's piece, or kNoRow.
PLAIT_HOST_DEVICE inline Slot own_row(const DevicePieces& pieces, const DevicePiece& piece,
                                      Slot id) {
  if (piece.split != EmbeddingSplit::rows || id == kNoRow) return id;
  const RowPlace place = place_in(pieces, piece, id);
  return static_cast<int>(place.rank) == pieces.rank ? static_cast<Slot>(place.row) : kNoRow;
}

// Returns the numbers of a row of a piece.
template <class T>
PLAIT_HOST_DEVICE const T* row_of(const DevicePiece& piece, std::uint64_t row) {
  return static_cast<const T*>(piece.rows) + row * piece.columns;
}

// A bag of a table, which a group of lanes works on; a block has kBagThreads.
struct BagPlace {
  std::uint64_t t, b;
  EdgeOffset begin, end;
};
inline constexpr int kBagThreads = 256;

// Finds the bag of this thread. Returns false if there is none.
template <int kLanes>
__device__ bool find_bag(const DevicePieces& pieces, const DeviceBags& bags, BagPlace& at) {
  const std::uint64_t bag = (blockIdx.x * std::uint64_t{kBagThreads} + threadIdx.x) / kLanes;
  if (bag >= pieces.tables * bags.per_table) return false;
  at.t = bag / bags.per_table;
  at.b = bag % bags.per_table;
  at.begin = bags.offsets[bag];
  at.end = bags.offsets[bag + 1];
  return true;
}
// Returns the blocks for groups of so many lanes.
inline unsigned blocks_of_bags(const DevicePieces& pieces, const DeviceBags& bags, int lanes) {
  const auto of_block = static_cast<std::uint64_t>(kBagThreads / lanes);
  return static_cast<unsigned>((pieces.tables * bags.per_table + of_block - 1) / of_block);
}

}  // namespace plait
