// A sparse matrix that libtorch's tensors can be multiplied by. The pattern is kept on one device;
// values are tensors that are given with each product.
#pragma once

#include <torch/types.h>

#include <memory>

#include "plait/graph/csr.h"
#include "plait/kernels/cuda/sparse.h"
#include "plait/kernels/dropout.h"

namespace plait {

// The pattern, which this object owns. Products have no gradient.
class SparseMatrix {
 public:
  // Keeps the pattern on the CPU or copies it to the current GPU. Column ids are below `columns`.
  // Throws DoesNotFitError.
  SparseMatrix(Csr32 matrix, std::uint64_t columns, const torch::Device& device);

  std::uint64_t columns() const { return columns_; }
  // Returns A x, rows x width, where A has the given values (one per entry) and x is columns x
  // width. All are float32, contiguous, on the matrix' device. With `fixed_order`, a row of the
  // result does not depend on the other rows of the matrix.
  torch::Tensor times(const torch::Tensor& values, const torch::Tensor& x,
                      bool fixed_order = false) const;
  // Returns `values` after dropout; `values` itself if the step is not active. `vertices` (int64,
  // on the device) holds the global id of each row.
  torch::Tensor dropped(const torch::Tensor& values, const torch::Tensor& vertices,
                        const DropoutStep& step) const;

 private:
  std::uint64_t columns_;
  Csr32 matrix_;                    // on the CPU
  std::unique_ptr<GpuSparse> gpu_;  // or on the GPU
};

}  // namespace plait
