// Folds the edges of each row, one after the other, into a record of floats, with all threads: the
// part that attention and the extremum over neighbours have in common on the CPU.
//
// A Kernel is copied for each task, so that its scratch memory belongs to one thread. It has
//   fold(row, begin, end, fetcher, record)  makes the record of these edges of a row, and tells the
//                                           fetcher by how many edges it goes on
//   join(record, later)                     adds the record of the edges that follow
//   finish(row, record)                     writes the results of a row
#pragma once

#include <vector>

#include "plait/kernels/cpu/row_tasks.h"

namespace plait {

// Sizes of a fold.
struct FoldWidths {
  std::uint64_t x;       // floats of a row of x
  std::uint64_t record;  // floats of a record
};

// Folds all rows of `edges`. Rows longer than kPieceEdges are folded in pieces, which are joined in
// order, so that no bit depends on the number of threads.
template <class Kernel>
void fold_rows(const EdgeRows& edges, const FoldWidths& width, const Kernel& kernel) {
  const RowTasks cut = cut_rows(edges.begin, edges.end);
  const std::size_t tasks = cut.tasks.size(), pieces = cut.pieces.size();
  Buffer<float> piece_records(pieces * width.record);
  const auto record_of = [&](std::size_t piece) {
    return piece_records.data() + piece * width.record;
  };
  const auto ahead = [&](const EdgeOffset* begin, const EdgeOffset* end, std::uint64_t rows) {
    return RowFetcher(edges.x, edges.columns, width.x, LookAhead(begin, end, rows));
  };

  parallel_for(tasks + pieces, [&](std::size_t i) {
    Kernel mine(kernel);
    if (i < tasks) {
      const RowRange rows = cut.tasks[i];
      RowFetcher fetcher =
          ahead(&edges.begin[rows.begin], &edges.end[rows.begin], rows.end - rows.begin);
      std::vector<float> record(width.record);
      for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
        if (edges.end[row] - edges.begin[row] > kPieceEdges) continue;
        mine.fold(row, edges.begin[row], edges.end[row], fetcher, record.data());
        mine.finish(row, record.data());
      }
    } else {
      const RowPiece& piece = cut.pieces[i - tasks];
      RowFetcher fetcher = ahead(&piece.begin, &piece.end, 1);
      mine.fold(piece.row, piece.begin, piece.end, fetcher, record_of(i - tasks));
    }
  });

  Kernel mine(kernel);
  for (std::size_t p = 0, next; p < pieces; p = next) {
    const std::uint64_t row = cut.pieces[p].row;
    for (next = p + 1; next < pieces && cut.pieces[next].row == row; ++next)
      mine.join(record_of(p), record_of(next));
    mine.finish(row, record_of(p));
  }
}

}  // namespace plait
