// Rows of a graph, listed by the number of their entries. Internal to this room.
#pragma once

#include <cstdint>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/base/ids.h"
#include "plait/communities/cuda/gains.cuh"

namespace plait {

// Rows of at most kShort entries are in no list. The slots are those of a LabelSums in shared
// memory: small and large rows have at most as many labels.
inline constexpr std::uint32_t kShort = kWarp;
inline constexpr std::uint32_t kSmallSlots = 1024, kLargeSlots = 8192;
inline constexpr EdgeOffset kGiant = EdgeOffset{1} << 14;  // entries of the shortest giant row

enum RowList { kSmallRows, kLargeRows, kRowsInMemory, kGiantRows, kRowLists };
inline constexpr int kTurnLists = 2;  // small and large rows are also listed by turn

// The numbers of a round that the host waits for.
struct RoundCounts {
  std::uint32_t moves;                         // vertices that have moved
  std::uint32_t rows[kTurnLists][kMoveTurns];  // of each list, by turn
};

// Lists of rows in memory of the GPU, which this object owns. Members throw DoesNotFitError.
class RowLists {
 public:
  // Waits for the stream.
  RowLists(const WeightedRows& graph, cudaStream_t stream);

  std::uint32_t size(RowList list) const { return counts_[list]; }
  // The entries of the longest row; 2^32 - 1 stands for more.
  std::uint32_t longest() const { return counts_[kRowLists]; }
  const std::uint32_t* rows(RowList list) const {
    return rows_.data() + static_cast<std::uint64_t>(list) * all_;
  }

  // Lists small and large rows by their turn in a round, and counts them in memory of the GPU.
  void sort_by_turn(const Moves& moves, RoundCounts* counts);
  // The rows of a turn of the round that was sorted last.
  const std::uint32_t* rows_of_turn(RowList list, std::uint32_t turn) const {
    return turns_.data() + turns_begin(list) + turn * std::uint64_t{counts_[list]};
  }

 private:
  std::uint64_t turns_begin(RowList list) const {
    return list == kSmallRows ? 0 : kMoveTurns * std::uint64_t{counts_[kSmallRows]};
  }

  cudaStream_t stream_;
  std::uint32_t all_;                 // rows of the graph
  DeviceArray<std::uint32_t> rows_;   // room for all rows in each list
  DeviceArray<std::uint32_t> turns_;  // small, then large rows, with room for all in each turn
  std::uint32_t counts_[kRowLists + 1] = {};
};

}  // namespace plait
