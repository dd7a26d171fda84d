// Sparse matrix times dense matrix on the CPU: y = A x, the sum over neighbours at the heart of
// every layer.
//
// Shapes: A has `rows` rows given by begin[i] .. end[i] into `columns` (an ordinary CSR passes
// offsets and offsets + 1); x holds rows of `width` floats, `x.stride` floats apart; y likewise.
// Rows of A need not touch: begin and end may take a part of each row of a CSR, and edges between
// them are never read. x and y may stand at any float; x is read faster if its rows begin on cache
// lines. They must not overlap. Rows of x may hold narrower numbers; sums are floats.
//
// Determinism: a row is summed in the order of its edges, in pieces whose boundaries depend on the
// graph alone, and pieces are added in order; so y is bit-identical for every number of threads and
// every instruction set level with the same vector arithmetic.
#pragma once

#include <cstdint>
#include <span>

#include "plait/base/dtype.h"
#include "plait/kernels/edge_rows.h"

namespace plait {

// Arguments of spmm(). Nothing is owned.
struct SpmmArgs {
  std::span<const EdgeOffset> begin;  // one per row
  std::span<const EdgeOffset> end;    // one per row
  const Slot* columns = nullptr;
  const float* weights = nullptr;  // one per edge, or null: all 1
  RowSource x;
  // The type of the numbers of x, in which x.stride counts. Rows of another type than f32 stand at
  // x.base, whose pointer is cast, and have no peers.
  DType x_type = DType::f32;
  std::uint64_t width = 0;
  float* y = nullptr;  // rows of `width`, y_stride floats apart
  std::uint64_t y_stride = 0;
  const float* row_scale = nullptr;  // y_i is multiplied by row_scale[i]; null: by 1
};

// y_i = row_scale_i * sum over e in begin_i .. end_i of weight_e * x[columns_e]. Overwrites y; a
// row without edges becomes 0. Uses all threads, balanced by edges. Throws Error if `begin` and
// `end` differ in size.
void spmm(const SpmmArgs& args);

// The same in three plain loops, in double precision, in one thread: the oracle.
void spmm_reference(const SpmmArgs& args);

}  // namespace plait
