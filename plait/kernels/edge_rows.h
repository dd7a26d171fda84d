// Edges of a rank's own rows and the rows that they read: the arguments that every operation over
// edges takes.
//
// An operation over edges is a plain struct of arguments that all devices share (attention.h,
// extremum.h). It has
//   EdgeRows edges                 filled in by the code that brings the rows
//   kDirection                     the direction in which it works on the edges
//   row_width()                    floats of each row that its edges read
//   result_width()                 floats per row of all that it may write, wanted or not, so that
//                                  it is the same on all ranks
//   results()                      the arrays that it writes, once `edges` is known
// and overloads of apply(operation) on the CPU, of apply_reference(operation), the oracle, and of
// apply(operation, pass, scratch, stream) with scratch_floats(operation, passes) on GPUs
// (cuda/NAME.cuh, cuda/edge_pass.cuh).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plait/base/ids.h"

namespace plait {

// Along the edges, a row reads its neighbours; against them, every vertex reads the rows that have
// it as a neighbour, as gradients do.
enum class Direction { along, against };

// Tells where row `slot` of x stands. Slots below `own` are rows of `base`. A slot h = slot - own
// above is row halo_row[h] of the peer halo_owner[h], read in that peer's memory (address
// translation, MGG section 4.2). Without peers, all slots are rows of `base`.
struct RowSource {
  const float* base = nullptr;
  std::uint64_t stride = 0;  // floats from one row to the next, in base and in peers
  Slot own = 0;
  const float* const* peers = nullptr;        // one pointer per rank, or null
  const std::uint32_t* halo_owner = nullptr;  // one rank per halo row
  const std::uint32_t* halo_row = nullptr;    // the row on that rank, one per halo row

  // Returns the first float of a slot's row.
  const float* row(Slot slot) const {
    if (peers == nullptr || slot < own) return base + slot * stride;
    return peers[halo_owner[slot - own]] + halo_row[slot - own] * stride;
  }
  // Returns the same row as values of T, for rows of T that were gathered (exchange/exchange.h).
  template <class T>
  const T* row_of(Slot slot) const {
    return reinterpret_cast<const T*>(row(slot));
  }
};

// The edges of a rank's own rows, begin[i] .. end[i] - 1 of row i, and the rows that they read.
struct EdgeRows {
  std::span<const EdgeOffset> begin;  // one per row
  std::span<const EdgeOffset> end;    // one per row
  const Slot* columns = nullptr;      // the slot that each edge reads
  RowSource x;
  const float* weights = nullptr;  // one per edge; null: all edges weigh 1
};

// Returns the bytes of the array at `data` with `rows` rows of `width` floats; none if `data` is
// null.
inline std::span<std::byte> results_at(float* data, std::uint64_t rows, std::uint64_t width) {
  return std::as_writable_bytes(std::span(data, data == nullptr ? 0 : rows * width));
}

}  // namespace plait
