// Rows from one place to another on the GPU, or into another GPU's memory: chosen, scaled,
// converted and padded on the way.
#pragma once

#include <cstdint>

#include "plait/base/dtype.h"
#include "plait/kernels/spmm_cuda.h"

namespace plait {

struct CopyRowsArgs {
  const float* from = nullptr;  // rows of `width` floats, which may stand at any float
  std::uint64_t from_stride = 0;
  const std::uint32_t* rows = nullptr;  // out row k is row rows[k]; null: row k
  const float* scale = nullptr;         // by row of `from`; null: 1
  std::uint64_t count = 0;              // rows to write
  std::uint64_t width = 0;
  void* to = nullptr;       // row_stride(width, type) elements apart; padding is written too
  DType type = DType::f32;  // of `to`: f32 or bf16
  // Blocks of 512 threads that work on it at a time; 0: as many as there is work for. Few leave the
  // GPU to others: 32 fill most of a link.
  unsigned blocks = 0;
};

void copy_rows(const CopyRowsArgs& args, cudaStream_t stream);

}  // namespace plait
