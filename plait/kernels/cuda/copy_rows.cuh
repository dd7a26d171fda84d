// Copies rows on the GPU, or into another GPU's memory: chosen, scaled, converted and padded on the
// way.
#pragma once

#include <cstdint>

#include "plait/base/dtype.h"
#include "plait/kernels/cuda/spmm.cuh"

namespace plait {

// Arguments of copy_rows(). All pointers are to memory that the GPU reaches.
struct CopyRowsArgs {
  const float* from = nullptr;  // rows of `width` floats, which may stand at any float
  std::uint64_t from_stride = 0;
  const std::uint32_t* rows = nullptr;  // row k of `to` is row rows[k] of `from`; null: row k
  const float* scale = nullptr;         // one factor per row of `from`; null: 1
  std::uint64_t count = 0;              // rows to write
  std::uint64_t width = 0;
  void* to = nullptr;       // row_stride(width, type) elements apart; padding is written too
  DType type = DType::f32;  // of `to`: f32 or bf16
  // Blocks of 512 threads that work at a time; 0: as many as there is work for. Few blocks leave
  // the GPU to others: 32 fill most of a link.
  unsigned blocks = 0;
};

// Enqueues the copy on the stream. Throws UsageError for f16.
void copy_rows(const CopyRowsArgs& args, cudaStream_t stream);

}  // namespace plait
