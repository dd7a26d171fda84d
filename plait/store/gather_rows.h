// Rows by global id, wherever they stand: out row i = the row of ids[i].
//
// A row stands at (rank, local row). `StoredRows` is a trivially copyable view that the CPU and the
// GPU share: one base address per rank, as the symmetric heap maps them (symmetric/heap.h,
// symmetric/cuda/heap.cuh), and a translation that is computed while rows move (WholeGraph, section
// 3.2; MGG, section 4.2).
#pragma once

#include <cstddef>
#include <cstdint>

#include "plait/base/dtype.h"
#include "plait/base/host_device.h"

namespace plait {

// The most ranks whose rows one process may reach: those of one NVLink domain. The GPU does not
// have the members of std::array, so arrays of this length are plain.
inline constexpr int kMostStoreRanks = 72;

// Where a row stands.
struct RowPlace {
  std::uint32_t rank;
  std::uint64_t row;  // in that rank's memory
};

// Rows of all ranks. Nothing is owned.
struct StoredRows {
  const std::byte* base[kMostStoreRanks] = {};  // by rank: its row 0
  std::uint64_t stride = 0;                     // bytes from one row to the next
  std::uint64_t rows = 0;                       // of all ranks
  int ranks = 0;
  // Without the two arrays, rank r has the rows starts[r] .. starts[r + 1] - 1, of which the first
  // is its row 0. With them, row `id` is row[id] of rank owner[id].
  std::uint64_t starts[kMostStoreRanks + 1] = {};
  const std::uint32_t* owner = nullptr;
  const std::uint32_t* row = nullptr;
};

// The type of elements: raw rows are copied as they are, others become fp32.
enum class RowForm : std::uint8_t { raw, f32, bf16, f16 };

// Arguments of gather_rows().
struct GatherRows {
  StoredRows from;
  const std::uint64_t* ids = nullptr;  // below from.rows; they may repeat
  std::uint64_t count = 0;             // of ids
  // Bytes of a row that are copied, of any number and alignment; or elements that are converted.
  std::uint64_t width = 0;
  RowForm form = RowForm::raw;
  std::byte* out = nullptr;
  std::uint64_t out_stride = 0;  // bytes
};

// Arguments of add_rows(): row ids[i] += row i of `rows`, in fp32. The rows of `to` are written,
// although StoredRows points to constant memory.
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

// Returns bytes per element, 1 for raw rows.
constexpr std::uint64_t element_bytes(RowForm form) {
  return form == RowForm::raw ? 1 : form == RowForm::f32 ? 4 : 2;
}

// Returns the place of a row. The number of ranks is small, so ranges are counted one by one.
// `starts` is from.starts, or a copy of it in faster memory.
PLAIT_HOST_DEVICE constexpr RowPlace place_of(const StoredRows& from, const std::uint64_t* starts,
                                              std::uint64_t id) {
  if (from.owner != nullptr) return {from.owner[id], from.row[id]};
  std::uint32_t rank = 0;
  for (int r = 1; r < from.ranks; ++r) rank += starts[r] <= id ? 1u : 0u;
  return {rank, id - starts[rank]};
}

}  // namespace plait
