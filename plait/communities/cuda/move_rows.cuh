// Local moves of rows by a warp or a block each. Internal to this room.
//
// Every row whose turn it is chooses a label. All work is the stream's; nothing waits for it.
#pragma once

#include "plait/base/cuda/cuda.cuh"
#include "plait/communities/cuda/gains.cuh"
#include "plait/communities/cuda/row_lists.cuh"

namespace plait {

// Rows that are in no list.
void move_short_rows(const Moves& moves, cudaStream_t stream);

// Small or large rows: `count` rows, of the turn of `moves`. Call allow_large_tables() before.
void move_listed_rows(const Moves& moves, RowList list, const std::uint32_t* rows,
                      std::uint32_t count, cudaStream_t stream);
// Allows blocks the shared memory of a large row. Throws as check_cuda().
void allow_large_tables();

// Tables in memory of the GPU, which this object owns, for rows of too many labels for shared
// memory.
class RowTables {
 public:
  // Takes no memory if there are no rows. Each row has at most `labels` labels. Throws
  // DoesNotFitError.
  RowTables(std::uint64_t rows, std::uint32_t labels, cudaStream_t stream);

  // Moves those of the `count` rows whose turn it is.
  void move(const Moves& moves, const std::uint32_t* rows, std::uint32_t count);

 private:
  cudaStream_t stream_;
  std::uint32_t slots_ = 0;  // of a table
  unsigned blocks_ = 0;      // which have a table each
  DeviceArray<std::uint32_t> tables_;
};

}  // namespace plait
