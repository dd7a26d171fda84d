// Bags of ids in the memory of a GPU (embedding/bags.h).
#pragma once

#include <cstdint>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/ids.h"

namespace plait {

// In the place of an id that counts for nothing, and of a row that another rank has.
inline constexpr Slot kNoRow = ~Slot{0};

// Bags as they are given (GivenBags); all pointers are to memory of the GPU.
struct GivenDeviceBags {
  const std::int64_t* ids = nullptr;
  std::uint64_t id_count = 0;
  const std::int64_t* offsets = nullptr;
  std::uint64_t offset_count = 0;
  bool with_end = false;
  const float* weights = nullptr;

  std::uint64_t count() const { return offset_count - (with_end && offset_count > 0 ? 1 : 0); }
};

// By table, in memory of the GPU: its number of rows, and the id that counts for nothing or -1.
struct DeviceBagTables {
  const std::uint64_t* rows = nullptr;
  const std::int64_t* padding = nullptr;
  std::uint64_t count = 0;
};

// Bags as they are worked on: bag k has the ids ids[offsets[k]] up to ids[offsets[k + 1] - 1], of
// which some are kNoRow.
struct DeviceBags {
  EdgeOffset* offsets = nullptr;
  Slot* ids = nullptr;
  float* weights = nullptr;  // one per id, or null: all 1
  std::uint64_t per_table = 0;
};

// Enqueues the copy of bags, whose number is a multiple of that of tables, to arrays as large as
// the given ones, with one more offset, and their check as by embedding/bags.h. An id that is wrong
// becomes kNoRow; offsets are copied as they are. `found`: tables.count + 2 numbers, namely where
// the ids of each table begin, the end, and a number above 0 if something is wrong.
void write_bags(const GivenDeviceBags& given, const DeviceBagTables& tables, const DeviceBags& to,
                std::uint64_t* found, cudaStream_t stream);

}  // namespace plait
