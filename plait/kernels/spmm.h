// Sparse matrix times dense matrix on the CPU: y = A x, the sum over neighbours at the heart of
// every layer.
//
// Shapes: A has `rows` rows given by begin[i] .. end[i] into `columns` (an ordinary CSR passes
// offsets and offsets + 1); x holds rows of `width` floats, `x.stride` floats apart; y likewise.
// Rows of A need not touch: begin and end may take a part of each row of a CSR, and edges between
// them are never read. x and y may stand at any float; x is read faster where its rows begin on
// cache lines. They must not overlap.
//
// Determinism: a row is summed in the order of its edges, in pieces whose boundaries depend on
// the graph alone, and pieces are added in order; so y is bit-identical for every number of
// threads and every instruction set level with the same vector arithmetic.
#pragma once

#include <cstdint>
#include <span>

#include "plait/base/ids.h"

namespace plait {

// Where row `slot` of x stands. Slots below `own` are rows of `base`; a slot h = slot - own above
// is row halo_row[h] of the peer halo_owner[h], read in that peer's memory (address translation,
// MGG section 4.2). With no peers, all slots are rows of `base`.
struct RowSource {
  const float* base = nullptr;
  std::uint64_t stride = 0;  // floats from a row to the next, in base and in peers
  Slot own = 0;
  const float* const* peers = nullptr;        // a pointer a rank, or null
  const std::uint32_t* halo_owner = nullptr;  // a rank a halo row
  const std::uint32_t* halo_row = nullptr;    // the row on that rank

  const float* row(Slot slot) const {
    if (peers == nullptr || slot < own) return base + slot * stride;
    return peers[halo_owner[slot - own]] + halo_row[slot - own] * stride;
  }
};

// The edges of rows, and the rows that they read.
struct EdgeRows {
  std::span<const EdgeOffset> begin;  // one a row
  std::span<const EdgeOffset> end;    // one a row
  const Slot* columns = nullptr;
  RowSource x;
};

struct SpmmArgs {
  std::span<const EdgeOffset> begin;  // one a row
  std::span<const EdgeOffset> end;    // one a row
  const Slot* columns = nullptr;
  const float* weights = nullptr;  // one an edge, or null: all 1
  RowSource x;
  std::uint64_t width = 0;
  float* y = nullptr;  // rows x y_stride
  std::uint64_t y_stride = 0;
  const float* row_scale = nullptr;  // y_i is multiplied by row_scale[i]; null: by 1
};

// y_i = row_scale_i * sum over e in begin_i .. end_i of weight_e * x[columns_e]. Overwrites y;
// a row without edges becomes 0. Uses all threads, balanced by edges.
void spmm(const SpmmArgs& args);

// The same in three plain loops, in double precision, one thread: the oracle.
void spmm_reference(const SpmmArgs& args);

}  // namespace plait
