// Neighbour groups for the strategy `get`, made on the GPU: MGG's partitions of at most ps
// neighbours (OSDI 2023, section 4.1), local ones and remote ones in lists of their own.
//
// Unlike those of row_groups_cuda.h, groups are short, a row has them in two lists, and most rows
// have several. So sums of one row are numbered over both lists, local before remote, and every
// number knows its row: sums can be written by number and added in order, or added to the row by
// atomics.
#pragma once

#include <cstdint>

#include "plait/base/cuda.h"
#include "plait/kernels/row_groups_cuda.h"

namespace plait {

struct GetGroupOptions {
  std::uint32_t ps = 16;  // neighbours in a group, 1 to 32
  // A number a row, or null: as in RowGroupOptions. Groups of one cluster are in the order of rows.
  const std::uint32_t* clusters = nullptr;
};

class GetGroups {
 public:
  static constexpr std::uint32_t kMostNeighbours = 32;
  // Rows of more partial sums are added by a block each.
  static constexpr std::uint32_t kLongRow = 64;

  // Row i has the local edges begin[i] .. split[i] and the remote edges split[i] .. end[i]. All
  // pointers are to memory of the GPU. Throws UsageError when ps is out of range, and at 2^31 rows
  // or partial sums.
  GetGroups(const EdgeOffset* begin, const EdgeOffset* split, const EdgeOffset* end,
            std::uint64_t rows, const GetGroupOptions& options, cudaStream_t stream);

  // The target of a group that is its row's only one is the row; of any other it is
  // RowGroup::kPartial | number of its sum. A row without edges is one empty local group.
  const DeviceArray<RowGroup>& local() const { return local_; }
  const DeviceArray<RowGroup>& remote() const { return remote_; }
  // Rows of several groups: those of up to kLongRow, and those of more.
  const DeviceArray<CutRow>& short_rows() const { return short_rows_; }
  const DeviceArray<CutRow>& long_rows() const { return long_rows_; }
  const std::uint32_t* row_of_sum() const { return row_of_sum_.data(); }
  std::uint64_t partial_sums() const { return row_of_sum_.size(); }
  std::uint64_t rows() const { return rows_; }

 private:
  DeviceArray<RowGroup> local_, remote_;
  DeviceArray<CutRow> short_rows_, long_rows_;
  DeviceArray<std::uint32_t> row_of_sum_;
  std::uint64_t rows_ = 0;
};

}  // namespace plait
