// Edges in the order of the rows that they name, and the sums of gradients by row.
#pragma once

#include <span>
#include <vector>

#include "plait/base/cuda/pinned_array.cuh"
#include "plait/embedding/cuda/bag_edges.cuh"
#include "plait/embedding/embedding_rules.h"
#include "plait/embedding/row_numbers.h"
#include "plait/kernels/row_cut.h"

namespace plait {

// Numbers on their way from the GPU to the host.
struct Readback {
  PinnedArray<std::uint64_t> numbers;
  DeviceEvent there;

  // Makes room for the counts of NamedRows that are so numbered, or by a part of these tables and
  // groups. Pinned memory is taken outside of steps, because the driver may wait for the GPU then.
  void reserve(const RowNumbers& of);
};

// The rows that edges name, ascending, and their edges: the edges of one row are in the order
// given. A group of tables (RowNumbers) has a range of the rows.
class NamedRows {
 public:
  // Enqueues the sort and the counts, and their copy to `counts`, which has room for them
  // (reserve()) and is free again after wait(). `bases`: a copy of numbers.bases on the GPU, which
  // lives as long as this object. Throws DoesNotFitError for 2^32 - 1 edges and more.
  NamedRows(OwnedEdges edges, const RowNumbers& numbers, const Slot* bases, Readback& counts,
            cudaStream_t stream);
  // Waits until counts are there, but not for work that was enqueued after the constructor.
  void wait();

  // After wait(): the number of rows of tables before numbers.tables[place], or of all at the end;
  // and of a group of tables.
  std::uint64_t before(std::size_t place) const { return before_[place]; }
  std::uint64_t rows_of(const TableGroup& group) const {
    return before_[group.end] - before_[group.first];
  }
  bool any() const { return before_.back() > 0; }
  // The numbers of rows, on the GPU.
  const Slot* rows() const { return rows_; }

 private:
  friend class SumsByRow;

  void find_rows(cudaStream_t stream);

  const RowNumbers numbers_;
  const Slot* const bases_;
  Readback& counts_;
  OwnedEdges sorted_;
  std::uint64_t most_ = 0;  // rows
  DeviceArrays memory_;
  Slot* rows_ = nullptr;
  EdgeOffset* starts_ = nullptr;    // by row, and the end: its first edge
  std::uint64_t* found_ = nullptr;  // as found_rows.cuh has it
  std::vector<std::uint64_t> before_;
  std::vector<GroupCounts> groups_;  // by group of tables: of neighbour groups
};

// Rows of gradients, in memory of the GPU.
struct GradientRows {
  const float* at = nullptr;
  std::uint64_t rows = 0, columns = 0, stride = 0;
  const Slot* places = nullptr;  // likewise, of edges with places
};

// The sums of the rows of a group of tables; all arrays have one element, or row, for each of them.
struct SumOfGroup {
  GradientRows gradients;
  float* values = nullptr;       // rows of gradients.columns floats
  std::int64_t* rows = nullptr;  // the rows in their tables; or null
  Slot* numbers = nullptr;       // their numbers; or null
  Slot* ids = nullptr;           // the numbers of ids that name them; or null
  bool divided = false;          // sums are divided by the number of ids
  DeviceEvent* done = nullptr;   // recorded behind the sum; or null
};
// Enqueues the sums, by group of tables, of the gradients that edges read; of edges with places
// only where the maximum has that place (bag_maxima.cuh). Long sums are cut at fixed lengths, so
// that the bits are the same each time. Called after rows.wait().
void sum_by_row(const NamedRows& rows, std::span<const SumOfGroup> sums, cudaStream_t stream);

}  // namespace plait
