// Neighbour groups on the GPU: all rows of a matrix, cut into pieces for one warp each, in the
// order in which they are worked on.
#pragma once

#include <cstdint>

#include "plait/base/cuda.h"
#include "plait/base/ids.h"

namespace plait {

// A piece of a row. A row that is one group is written by its warp; the groups of a longer row
// write partial sums, which are added in order afterwards: no atomics, and the same bits each time.
struct RowGroup {
  static constexpr std::uint32_t kPartial = 0x80000000u;

  EdgeOffset begin;      // its first edge
  std::uint32_t edges;   // at most 2^31
  std::uint32_t target;  // the row, or kPartial | number of the partial sum
};

// A row that was cut: its partial sums are first .. first + count - 1.
struct CutRow {
  std::uint32_t row, first, count;
};

struct RowGroupOptions {
  std::uint32_t most = 2048;  // edges in a group; see group_size() in row_cut.h
  // A number a row, or null. Rows of one cluster are worked on together, so that what they read in
  // common is still in a cache (see reorder/clusters.h).
  const std::uint32_t* clusters = nullptr;
  // Rows without edges have no group: for sums that are added to what is there.
  bool skip_empty = false;
};

class RowGroups {
 public:
  // Row i has the edges begin[i] .. end[i]. All pointers are to memory of the GPU. Throws
  // UsageError above 2^31 - 1 rows. Within a cluster, groups with more edges come first.
  RowGroups(const EdgeOffset* begin, const EdgeOffset* end, std::uint64_t rows,
            const RowGroupOptions& options, cudaStream_t stream);

  const RowGroup* groups() const { return groups_.data(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(groups_.size()); }
  const CutRow* cut_rows() const { return cut_.data(); }
  std::uint32_t cut_size() const { return static_cast<std::uint32_t>(cut_.size()); }
  std::uint32_t partial_sums() const { return static_cast<std::uint32_t>(partial_rows_.size()); }
  const std::uint32_t* partial_rows() const { return partial_rows_.data(); }  // the row of each
  EdgeOffset edges() const { return edges_; }

 private:
  DeviceArray<RowGroup> groups_;
  DeviceArray<CutRow> cut_;
  DeviceArray<std::uint32_t> partial_rows_;
  EdgeOffset edges_ = 0;
};

}  // namespace plait
