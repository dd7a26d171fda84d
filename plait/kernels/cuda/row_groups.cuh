// Neighbour groups on the GPU: all rows of a matrix, cut into pieces for one warp each, in the
// order in which they are worked on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/ids.h"
#include "plait/kernels/cuda/even_cut.cuh"
#include "plait/kernels/cuda/padded_copy.h"
#include "plait/kernels/row_cut.h"

namespace plait {

// A piece of a row. A row that is one group is written by its warp. The groups of a longer row
// write partial sums, which are added afterwards, in an order that depends on their number and the
// width: no atomics, and the same bits each time.
struct RowGroup {
  static constexpr std::uint32_t kPartial = 0x80000000u;

  EdgeOffset begin;      // the group's first edge
  std::uint32_t edges;   // at most 2^31
  std::uint32_t target;  // the row, or kPartial | number of the partial sum
};

// The cut of rows into groups, and the order in which groups are worked on.
struct RowGroupOptions {
  std::uint32_t most = 2048;  // edges of a group; see group_size() in row_cut.h
  // One number per row, or null. Rows of one cluster are worked on together, so that rows that they
  // read in common are still in a cache (see reorder/work_order.h).
  const std::uint32_t* clusters = nullptr;
  // Rows without edges have no group: for sums that are added to y.
  bool skip_empty = false;
  // Make whole() too, where it is of use.
  bool whole = false;
  // Where the groups' memory comes from; null: not from a pool. Groups that live for one batch
  // take it from one, because other memory is freed only when the GPU has nothing to do; they have
  // no even cut.
  std::optional<FromPool> pool = {};
};

// The groups of all rows of one matrix, in memory of the GPU, which this object owns.
class RowGroups {
 public:
  // Row i has the edges begin[i] .. end[i] - 1. All pointers are to memory of the GPU. Within a
  // cluster, groups with more edges come first. Waits for the stream. Throws UsageError above 2^31
  // - 1 rows, DoesNotFitError if memory is short. If end is begin + 1, so that the rows are those
  // of a CSR, begin[0] .. begin[rows] must outlive this object.
  RowGroups(const EdgeOffset* begin, const EdgeOffset* end, std::uint64_t rows,
            const RowGroupOptions& options, cudaStream_t stream);

  // Makes room for the groups of matrices with at most so many rows and so many of each count, with
  // addresses and sizes that stay, for work that is recorded once and replayed. Throws
  // DoesNotFitError.
  explicit RowGroups(const GroupCounts& room);
  // Takes memory of the pool for groups of one batch, which the caller writes there; these are as
  // many as `counts` has, and all long. There are no partial_rows().
  RowGroups(const GroupCounts& counts, const FromPool& pool);
  RowGroup* room_for_groups() { return groups_.data(); }
  CutRow* room_for_cut_rows() { return cut_.data(); }
  GroupCounts counts() const;
  // Appends the copies that move the groups of another matrix into this room. The matrix has `rows`
  // rows; rows without edges follow up to `room_rows`. Its counts are at most the counts of the
  // room, where the room has groups for each of its rows besides the groups of rows that are cut
  // (fits() in sample_counts.h). Groups that are then left over have no edges, and cut rows that
  // are left over no groups: kernels write nothing for them, or a partial sum that no row reads.
  void take(const RowGroups& from, std::uint64_t rows, std::uint64_t room_rows,
            std::vector<PaddedCopy>& copies) const;

  // The last short_size() groups are those with few edges (short_group() in row_cut.h). It is 0 if
  // groups are long on average: then all are in the order of clusters.
  std::uint32_t short_size() const { return short_; }
  // The groups, the rows that were cut, and the row of each partial sum, with their numbers. The
  // last hubs() of the rows that were cut have many groups.
  const RowGroup* groups() const { return groups_.data(); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(groups_.size()); }
  const CutRow* cut_rows() const { return cut_.data(); }
  std::uint32_t cut_size() const { return static_cast<std::uint32_t>(cut_.size()); }
  std::uint32_t hubs() const { return hubs_; }
  std::uint32_t partial_sums() const { return partial_sums_; }
  const std::uint32_t* partial_rows() const { return partial_rows_.data(); }
  // The number of edges in all groups; an upper bound if the caller writes groups, whose counts may
  // have one, or if this is a room.
  EdgeOffset most_edges() const { return edges_; }
  // The even cut of the same edges for narrow sums, if the rows are those of a CSR and few edges
  // per row allow it (suits_even_cut()); else it has no tiles. The other tells whether it is
  // faster.
  const EvenCut& even() const { return even_; }
  bool gains_by_even_cut() const { return gains_by_even_cut_; }
  // Groups of the same edges that are whole rows, if RowGroupOptions asks for them, the matrix is
  // small, no row has more than kWholeRow edges, and these groups cut rows; else null. In a small
  // matrix, the launch that adds the sums of cut rows takes longer than a warp takes for a row.
  const RowGroups* whole() const { return whole_.get(); }

 private:
  // Makes all but whole(). Returns whether rows were cut, but none has more than kWholeRow
  // edges.
  bool cut(const EdgeOffset* begin, const EdgeOffset* end, std::uint64_t rows,
           const RowGroupOptions& options, cudaStream_t stream);

  DeviceArray<RowGroup> groups_;
  DeviceArray<CutRow> cut_;
  DeviceArray<std::uint32_t> partial_rows_;
  EdgeOffset edges_ = 0;  // at most
  std::uint32_t short_ = 0, hubs_ = 0, partial_sums_ = 0;
  EvenCut even_;
  bool gains_by_even_cut_ = false;
  std::unique_ptr<const RowGroups> whole_;
};

}  // namespace plait
