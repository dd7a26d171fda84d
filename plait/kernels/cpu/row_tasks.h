// Shares the rows of a matrix among the CPU's threads, for kernels that read one row of x per edge.
//
// Consecutive rows make tasks of about equal edges; a row longer than kPieceEdges is cut into
// pieces at fixed places, each a task of its own, whose results are joined in order. Cuts depend on
// the graph alone, so that no bit of a result depends on the threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/ids.h"
#include "plait/base/parallel.h"
#include "plait/kernels/spmm.h"

namespace plait {

inline constexpr EdgeOffset kPieceEdges = 1 << 12;
inline constexpr std::uint64_t kLinesAhead = 64;  // cache lines that are fetched ahead of their use
inline constexpr std::uint64_t kLineFloats = kCacheLine / sizeof(float);

// Edges begin .. end - 1 of a row that is too long to be worked on in one go.
struct RowPiece {
  std::uint64_t row;
  EdgeOffset begin;
  EdgeOffset end;
};

// Rows begin .. end - 1.
struct RowRange {
  std::uint64_t begin;
  std::uint64_t end;
};

// The work on all rows.
struct RowTasks {
  std::vector<RowRange> tasks;   // their long rows are left out
  std::vector<RowPiece> pieces;  // of the long rows, by row, then by edge
};

// Cuts the rows with edges begin[i] .. end[i] - 1, in one pass, with all threads. Throws Error if
// `begin` and `end` differ in size.
RowTasks cut_rows(std::span<const EdgeOffset> begin, std::span<const EdgeOffset> end);

// A place in the edges of rows short enough to be worked on whole, ahead of the work.
class LookAhead {
 public:
  // Begins at the first of `rows` rows. The arrays outlive this object.
  LookAhead(const EdgeOffset* begin, const EdgeOffset* end, std::uint64_t rows)
      : begin_(begin), end_(end), rows_(rows) {}
  // Returns the number of edges that follow in one run, from edge() on; 0 at the end of all rows.
  EdgeOffset available() {
    while (edge_ == stop_ && next_ < rows_) {
      const EdgeOffset begin = begin_[next_], end = end_[next_];
      if (end - begin <= kPieceEdges) {
        edge_ = begin;
        stop_ = end;
      }
      ++next_;
    }
    return stop_ - edge_;
  }
  EdgeOffset edge() const { return edge_; }
  void advance(EdgeOffset edges) { edge_ += edges; }

 private:
  const EdgeOffset* begin_;
  const EdgeOffset* end_;
  std::uint64_t rows_;
  std::uint64_t next_ = 0;
  EdgeOffset edge_ = 0;
  EdgeOffset stop_ = 0;
};

// Fetches whole rows of x into L2, ahead of the edges that read them.
class RowFetcher {
 public:
  // width: floats of a row of x that are read. Fetches the first rows at once.
  RowFetcher(const RowSource& x, const Slot* columns, std::uint64_t width, const LookAhead& ahead)
      : x_(x), columns_(columns), width_(width), ahead_(ahead) {
    fetch(kLinesAhead / ((width + kLineFloats - 1) / kLineFloats + 1) + 1);
  }
  // Fetches as many further rows as the work goes on by.
  void fetch(EdgeOffset edges) {
    if (width_ == 0) return;
    for (; edges > 0 && ahead_.available() > 0; --edges) {
      const float* row = x_.row(columns_[ahead_.edge()]);
      for (std::uint64_t i = 0; i < width_; i += kLineFloats) __builtin_prefetch(row + i, 0, 2);
      __builtin_prefetch(row + width_ - 1, 0, 2);  // a row may begin within a line
      ahead_.advance(1);
    }
  }

 private:
  RowSource x_;
  const Slot* columns_;
  std::uint64_t width_;
  LookAhead ahead_;
};

}  // namespace plait
