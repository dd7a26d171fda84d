// Gathers rows by global id, wherever they stand: out row i = the row of ids[i]. Adds to such rows.
#pragma once

#include "plait/table/stored_rows.h"

namespace plait {

// Numbers of rows that gathers have read.
struct GatherCounts {
  std::uint64_t hot = 0;      // from copies of hot rows
  std::uint64_t crossed = 0;  // over a link

  // Returns the share of rows of other ranks that copies served. Gathers count a row as often as
  // they read it.
  double hit_rate() const {
    return hot == 0 ? 0 : static_cast<double>(hot) / static_cast<double>(hot + crossed);
  }
};

// Arguments of gather_rows().
struct GatherRows {
  StoredRows from;
  const std::uint64_t* ids = nullptr;  // below from.rows; they may repeat
  std::uint64_t count = 0;             // of ids
  // Bytes of a row that are copied, of any number and alignment; or elements that are converted.
  std::uint64_t width = 0;
  DType type = DType::raw;
  std::byte* out = nullptr;
  std::uint64_t out_stride = 0;    // bytes
  GatherCounts* counts = nullptr;  // the numbers of rows are added to these; or null
};

// Arguments of add_rows(): row ids[i] += row i of `rows`, in fp32. The rows of `to` are written,
// although StoredRows points to constant memory; none of them is hot.
struct AddRows {
  StoredRows to;
  const std::uint64_t* ids = nullptr;
  std::uint64_t count = 0;
  std::uint64_t width = 0;  // floats
  const float* rows = nullptr;
  std::uint64_t rows_stride = 0;  // floats
};

// Copies the rows, by all threads. Nothing is checked. Reads rows ahead of their copies, because
// each is elsewhere.
void gather_rows(const GatherRows& args);
// Adds the rows, by all threads; a row that comes up several times gets its sums in the order of i,
// for every number of threads. Rows of other ranks must not be written at the same time. Takes 16
// bytes of memory per id.
void add_rows(const AddRows& args);

// The same in plain loops and one thread: the oracles.
void gather_rows_reference(const GatherRows& args);
void add_rows_reference(const AddRows& args);

}  // namespace plait
