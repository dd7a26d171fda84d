// A sparse matrix where libtorch can multiply by it: the pattern is kept on one device, values are
// tensors that are given with each product.
#pragma once

#include <torch/types.h>

#include <memory>

#include "plait/graph/csr.h"
#include "plait/kernels/dropout.h"
#include "plait/kernels/gpu_sparse.h"

namespace plait {

class SparseMatrix {
 public:
  // The pattern of `matrix`; its columns are below `columns`.
  SparseMatrix(Csr32 matrix, std::uint64_t columns, const torch::Device& device);

  std::uint64_t columns() const { return columns_; }
  // A x, rows x width, where A has the given values (one an entry) and x is columns x width. All
  // float32, contiguous, on the matrix' device. With `fixed_order`, a row of the result does not
  // depend on the other rows of the matrix.
  torch::Tensor times(const torch::Tensor& values, const torch::Tensor& x,
                      bool fixed_order = false) const;
  // `values` after dropout; `vertices` (int64, on the device) has the global id of each row.
  torch::Tensor dropped(const torch::Tensor& values, const torch::Tensor& vertices,
                        const DropoutStep& step) const;

 private:
  std::uint64_t columns_;
  Csr32 matrix_;                    // on the CPU
  std::unique_ptr<GpuSparse> gpu_;  // or on the GPU
};

}  // namespace plait
