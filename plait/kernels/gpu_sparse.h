// A sparse matrix on the GPU, such as bags of words or their transpose, times a dense one. No
// header of CUDA is needed here.
//
// The matrix is a pattern: values are given with each product, because dropout changes them.
#pragma once

#include <memory>

#include "plait/graph/csr.h"
#include "plait/kernels/dropout.h"

namespace plait {

// Pointers to memory of the GPU.
struct GpuProduct {
  const float* values = nullptr;  // one an entry of the matrix
  const float* x = nullptr;       // columns of the matrix x width
  std::uint64_t width = 0;
  float* y = nullptr;             // rows of the matrix x width; overwritten
  float* partial_sums = nullptr;  // partial_sums() x width, overwritten
  bool fixed_order = false;       // as in DeviceSpmmArgs
};

class GpuSparse {
 public:
  // Copies the pattern to the current GPU. Throws DoesNotFitError.
  GpuSparse(const Csr32& matrix, std::uint64_t columns);
  ~GpuSparse();

  std::uint64_t rows() const;
  std::uint64_t partial_sums() const;
  // y = A x, enqueued on the cudaStream_t; the same bits each time.
  void multiply(const GpuProduct& product, void* stream) const;
  // dropped_e = values_e times the mask of (vertices[row of e], column of e), for each entry e.
  // Enqueued likewise.
  void drop(const DropoutStep& step, const std::uint64_t* vertices, const float* values,
            float* dropped, void* stream) const;

 private:
  struct Arrays;
  std::unique_ptr<const Arrays> arrays_;
};

}  // namespace plait
