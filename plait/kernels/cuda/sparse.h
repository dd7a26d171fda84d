// A sparse matrix on the GPU, such as bags of words or their transpose, times a dense one. This
// header needs no header of CUDA.
//
// The matrix is a pattern: values are given with each product, because dropout changes them.
#pragma once

#include <memory>

#include "plait/graph/csr.h"
#include "plait/kernels/dropout.h"

namespace plait {

// Arguments of a product. Pointers are to memory of the GPU.
struct GpuProduct {
  const float* values = nullptr;  // one per entry of the matrix
  const float* x = nullptr;       // columns of the matrix x width
  std::uint64_t width = 0;
  float* y = nullptr;             // rows of the matrix x width; overwritten
  float* partial_sums = nullptr;  // scratch(width) floats at a multiple of 16 bytes; overwritten
  bool fixed_order = false;       // as in DeviceSpmmArgs
};

// The pattern, in memory of the GPU, which this object owns.
class GpuSparse {
 public:
  // Copies the pattern to the current GPU, and waits for it. Column ids are below `columns`. Throws
  // DoesNotFitError.
  GpuSparse(const Csr32& matrix, std::uint64_t columns);
  ~GpuSparse();

  std::uint64_t rows() const;
  // Returns the floats that a product of rows of `width` needs as `partial_sums`.
  std::uint64_t scratch(std::uint64_t width) const;
  // Enqueues y = A x on the cudaStream_t; y has the same bits each time.
  void multiply(const GpuProduct& product, void* stream) const;
  // Enqueues on the cudaStream_t, for each entry e: dropped_e = values_e times the mask of
  // (vertices[row of e], column of e). `step` must be active. Pointers are to memory of the GPU.
  void drop(const DropoutStep& step, const std::uint64_t* vertices, const float* values,
            float* dropped, void* stream) const;

 private:
  struct Arrays;
  std::unique_ptr<const Arrays> arrays_;
};

}  // namespace plait
