// Norms of some rows of a piece of an embedding table, and their limit, on GPUs
// (embedding/row_norms.h).
#pragma once

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/ids.h"
#include "plait/embedding/norm_limit.h"
#include "plait/embedding/piece_rows.h"

namespace plait {

// Rows rows[0] - base, rows[1] - base, ... of a piece in memory of the GPU.
struct SomeRows {
  const Slot* rows = nullptr;
  std::uint64_t count = 0;
  Slot base = 0;
  PieceRows piece;
};

// Enqueues sums[k] = the sum of powers of row number k.
void norm_sums(const NormLimit& limit, const SomeRows& rows, double* sums, cudaStream_t stream);
// Enqueues the limit of the norms of these rows by the sums of powers in all columns of the table.
void limit_norms(const NormLimit& limit, const SomeRows& rows, const double* sums,
                 cudaStream_t stream);

}  // namespace plait
