// Sparse matrix times dense matrix on the GPU: y = A x.
//
// Shapes are as in kernels/spmm.h; all pointers are to memory that the GPU reaches. x and y are
// stored in any DType, sums are fp32. The result has the same bits each time, whatever the order of
// groups: a row's edges are summed in a fixed pattern, the groups of a cut row in one that depends
// on their number and the width. Narrow sums by the even cut depend on where in the matrix a row
// stands, too, and sums of a small matrix on its longest row and the number of its rows.
//
// Rows of x are read fastest (16 bytes per lane) if x and its stride are multiples of 16 bytes and
// rows are padded to such a multiple, as row_stride() has them; any other x is read element by
// element, which takes twice as long. Rows of y may stand at any float.
#pragma once

#include <cstdint>

#include "plait/base/dtype.h"
#include "plait/kernels/cuda/row_groups.cuh"

namespace plait {

// Rows in device memory, `stride` elements apart. Void is void or const void.
template <class Void>
struct DeviceRows {
  Void* data = nullptr;
  DType type = DType::f32;
  std::uint64_t stride = 0;
};

// The work of one warp or block in a sum of at most kEvenWidth columns (kernels/even_cut.h).
enum class NarrowCut {
  automatic,  // tiles, if these are possible and faster (gains_by_even_cut())
  groups,
  tiles  // for tests and benchmarks: throws UsageError without an even cut and for fixed_order
};

// Arguments of spmm(). Nothing is owned.
struct DeviceSpmmArgs {
  const RowGroups* groups = nullptr;
  const Slot* columns = nullptr;
  const float* weights = nullptr;  // one per edge, or null: all 1
  DeviceRows<const void> x;
  std::uint64_t x_rows = 0;  // rows of x that columns may name
  std::uint64_t width = 0;
  DeviceRows<void> y;                // fp32, or the type of x
  const float* row_scale = nullptr;  // one per row, or null: all 1
  bool accumulate = false;           // add to y instead of overwriting it
  // Memory for a cut row's sums: spmm_scratch() floats at a multiple of 16 bytes, or null if these
  // are 0.
  float* partial_sums = nullptr;
  // Bytes of a row of x that are read in one pass over the edges: a power of two from 16 to 512, or
  // 0: 256 with fixed_order, 512 if there are short groups, else one to four lines of the cache, by
  // the number and the place of rows.
  std::uint32_t slice_bytes = 0;
  // The order in which a row is summed depends only on its edges, the width and the groups' size,
  // not on x_rows or the mean length of rows.
  bool fixed_order = false;
  NarrowCut narrow = NarrowCut::automatic;
};

// Rows of up to this width are summed in slices of any size that spmm() chooses by itself.
inline constexpr std::uint64_t kMostSpmmWidth = std::uint64_t{65535} * 32;

// Returns the floats that `partial_sums` needs.
std::uint64_t spmm_scratch(const RowGroups& groups, std::uint64_t width);

// Enqueues y_i (+)= row_scale_i * sum over edges e of row i of weight_e * x[columns_e]. Throws
// UsageError if the types do not go together, rows are cut but `partial_sums` is null, rows of x
// are 2^32 elements apart or more, or a row has more than 65,535 slices.
void spmm(const DeviceSpmmArgs& args, cudaStream_t stream);

}  // namespace plait
