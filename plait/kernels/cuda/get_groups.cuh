// Neighbour groups for the strategy `get`, made on the GPU: MGG's partitions of at most ps
// neighbours (OSDI 2023, section 4.1), with separate lists for local and remote ones, which may
// have a size of their own.
//
// Unlike the groups of cuda/row_groups.cuh, these are short, a row has them in two lists, and most
// rows have several. So sums of one row are numbered over both lists, local before remote, and
// every number knows its row: sums can be written by number and added in order, or added to the row
// by atomics.
#pragma once

#include <cstdint>

#include "plait/base/cuda/cuda.cuh"
#include "plait/kernels/cuda/row_groups.cuh"
#include "plait/plan/get_tuning.h"

namespace plait {

// The cut of rows into groups.
struct GetGroupOptions {
  // Neighbours in a local and in a remote group, 1 to GetTuning::kWholeRow.
  std::uint32_t ps = 16, remote_ps = 16;
  // One number per row, or null: as in RowGroupOptions. Groups of one cluster are in the order of
  // rows.
  const std::uint32_t* clusters = nullptr;
};

// The groups of one shard, in memory of the GPU, which this object owns.
class GetGroups {
 public:
  // The partial sums of a row with more of them than this are added by a block of their own.
  static constexpr std::uint32_t kLongRow = 64;

  // Row i has the local edges begin[i] .. split[i] - 1 and the remote edges split[i] .. end[i] - 1.
  // All pointers are to memory of the GPU. Waits for the stream. Throws UsageError if ps is out of
  // range and at 2^31 rows or partial sums, DoesNotFitError if memory is short.
  GetGroups(const EdgeOffset* begin, const EdgeOffset* split, const EdgeOffset* end,
            std::uint64_t rows, const GetGroupOptions& options, cudaStream_t stream);

  // The two lists. The target of a group that is its row's only one is the row; of any other it is
  // RowGroup::kPartial | number of its sum. A row without edges is one empty local group.
  const DeviceArray<RowGroup>& local() const { return local_; }
  const DeviceArray<RowGroup>& remote() const { return remote_; }
  // Rows of several groups: short_rows() of up to kLongRow sums, long_rows() of more.
  const DeviceArray<CutRow>& short_rows() const { return short_rows_; }
  const DeviceArray<CutRow>& long_rows() const { return long_rows_; }
  // The row of each partial sum, and the numbers of partial sums and of rows.
  const std::uint32_t* row_of_sum() const { return row_of_sum_.data(); }
  std::uint64_t partial_sums() const { return row_of_sum_.size(); }
  std::uint64_t rows() const { return rows_; }
  // The most neighbours that a group can have.
  std::uint32_t most_neighbours() const { return most_neighbours_; }

 private:
  DeviceArray<RowGroup> local_, remote_;
  DeviceArray<CutRow> short_rows_, long_rows_;
  DeviceArray<std::uint32_t> row_of_sum_;
  std::uint64_t rows_ = 0;
  std::uint32_t most_neighbours_ = 0;
};

}  // namespace plait
