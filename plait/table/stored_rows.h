// Rows by global id, wherever they stand: the view of them that the CPU and the GPU share.
//
// A row stands at (rank, local row). `StoredRows` is trivially copyable: one base address per rank,
// as the symmetric heap maps them (symmetric/heap.h, symmetric/cuda/heap.cuh), and a translation
// that is computed while rows move (WholeGraph, section 3.2; MGG, section 4.2).
#pragma once

#include <cstddef>
#include <cstdint>

#include "plait/base/dtype.h"
#include "plait/base/host_device.h"

namespace plait {

// The most ranks whose rows one process may reach: the ranks of one NVLink domain. The GPU does not
// have the members of std::array, so arrays of this length are plain.
inline constexpr int kMostStoreRanks = 72;

// Tells whether rows of a type are stored and gathered by copies of their bytes. Rows of other
// types become fp32 when they are gathered.
constexpr bool is_copied(DType type) { return type == DType::raw || type == DType::f32; }
// Returns the bytes per element of rows before they are stored, and after they were gathered.
constexpr std::uint64_t unstored_size(DType type) { return type == DType::raw ? 1 : sizeof(float); }
// Returns the place of the fp32 scale in a row of `width` elements, in bytes.
PLAIT_HOST_DEVICE constexpr std::uint64_t scale_offset(std::uint64_t width) {
  return (width + 3) / 4 * 4;
}
// Returns the bytes that a row takes. They do not overflow below a width of 2^61.
constexpr std::uint64_t stored_bytes(DType type, std::uint64_t width) {
  return is_scaled(type) ? scale_offset(width) + sizeof(float) : width * size_of(type);
}
// Returns the bytes from one row to the next in memory that Plait lays out. Rows of 64 bytes and
// more begin at multiples of the 16 bytes that a lane of a GPU reads at once, rows of 16 bytes and
// more at multiples of 4; so gaps never take a fifth. Shorter rows have none.
constexpr std::uint64_t stored_stride(DType type, std::uint64_t width) {
  const std::uint64_t bytes = stored_bytes(type, width);
  const std::uint64_t unit = bytes >= 64 ? 16 : bytes >= 16 || is_scaled(type) ? 4 : 1;
  return (bytes + unit - 1) / unit * unit;
}

// The place of a row.
struct RowPlace {
  std::uint32_t rank;
  std::uint64_t row;  // in that rank's memory
};

// Which of 64 consecutive ids are hot, and the number of hot ids below the first of them.
struct HotIds {
  std::uint64_t bits, before;
};

// Rows of all ranks. Nothing is owned.
struct StoredRows {
  // By rank: its row 0. base[ranks] has copies of the hot rows, in ascending order of ids.
  const std::byte* base[kMostStoreRanks + 1] = {};
  std::uint64_t stride = 0;  // bytes from one row to the next
  std::uint64_t rows = 0;    // of all ranks
  int ranks = 0;
  int own = -1;  // the rank whose rows are in the reader's own memory; -1: none
  // There are three translations. With `owner` and `row`, row `id` is row[id] of rank owner[id].
  // With `dealt`, ids are dealt out (dealt_place()). Without either, rank r has the rows starts[r]
  // .. starts[r + 1] - 1, beginning with its row 0.
  std::uint64_t starts[kMostStoreRanks + 1] = {};
  const std::uint32_t* owner = nullptr;
  const std::uint32_t* row = nullptr;
  std::uint64_t dealt = 0;      // 2^64 / ranks, rounded up; needs 2 ranks and rows below 2^57
  const HotIds* hot = nullptr;  // one per 64 ids; null: no row is copied
};

// Returns the upper half of a product.
PLAIT_HOST_DEVICE constexpr std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}

// Returns the rank that gets the first id of a round of dealing. Rounds begin at ranks that a hash
// chooses, so that no stride of ids falls upon one rank.
PLAIT_HOST_DEVICE constexpr std::uint64_t first_of_round(std::uint64_t round, std::uint64_t ranks) {
  return high_product(round * 0x9E3779B97F4A7C15u, ranks);
}

// Returns the place of a row that is dealt out: round k of dealing gives one of the ids k * ranks
// .. (k + 1) * ranks - 1 to each rank, as its row k. `dealt`: as StoredRows::dealt.
PLAIT_HOST_DEVICE constexpr RowPlace dealt_place(std::uint64_t id, std::uint64_t dealt,
                                                 std::uint64_t ranks) {
  const std::uint64_t round = high_product(id, dealt);
  const std::uint64_t to = id - round * ranks + first_of_round(round, ranks);
  return {static_cast<std::uint32_t>(to < ranks ? to : to - ranks), round};
}

// Counts the bits that are set.
PLAIT_HOST_DEVICE constexpr unsigned count_bits(std::uint64_t bits) {
#ifdef __CUDA_ARCH__
  return static_cast<unsigned>(__popcll(bits));
#else
  return static_cast<unsigned>(__builtin_popcountll(bits));
#endif
}

// Returns the place of a row, that of its copy if it is hot. The number of ranks is small, so
// ranges are counted one by one. `starts` is from.starts, or a copy of it in faster memory.
PLAIT_HOST_DEVICE constexpr RowPlace place_of(const StoredRows& from, const std::uint64_t* starts,
                                              std::uint64_t id) {
  if (from.hot != nullptr) {
    const HotIds ids = from.hot[id / 64];
    const std::uint64_t bit = std::uint64_t{1} << id % 64;
    if ((ids.bits & bit) != 0)
      return {static_cast<std::uint32_t>(from.ranks),
              ids.before + count_bits(ids.bits & (bit - 1))};
  }
  if (from.owner != nullptr) return {from.owner[id], from.row[id]};
  if (from.dealt != 0) return dealt_place(id, from.dealt, static_cast<std::uint64_t>(from.ranks));
  std::uint32_t rank = 0;
  for (int r = 1; r < from.ranks; ++r) rank += starts[r] <= id ? 1u : 0u;
  return {rank, id - starts[rank]};
}

// Tells whether a row at this place crosses a link when it is read.
PLAIT_HOST_DEVICE constexpr bool crosses(const StoredRows& from, RowPlace place) {
  return static_cast<int>(place.rank) != from.own && static_cast<int>(place.rank) != from.ranks;
}

}  // namespace plait
