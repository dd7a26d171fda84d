// cuSPARSE's SpMM, for comparisons: the best of its algorithms for CSR, each with its
// preprocessing, for row-major fp32 with 32-bit indices. The library is found at run time.
#pragma once

#include <cusparse.h>

#include <array>
#include <cstdint>

#include "plait/base/cuda/cuda.cuh"

namespace plait {

// The arrays of one product, in memory of the GPU; they outlive CusparseSpmm.
struct CusparseArgs {
  std::int64_t rows = 0, columns = 0, edges = 0;
  const std::int32_t* offsets = nullptr;
  const std::uint32_t* slots = nullptr;
  const float* weights = nullptr;  // one per edge
  const float* x = nullptr;        // columns x width, x_stride floats apart
  std::int64_t x_stride = 0;
  float* y = nullptr;  // rows x width
  std::int64_t width = 0;
  cudaStream_t stream = nullptr;
};

// One product y = A x with fixed arrays, to be run many times.
class CusparseSpmm {
 public:
  static constexpr std::array kAlgorithms{CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2,
                                          CUSPARSE_SPMM_CSR_ALG3};

  // Prepares all algorithms. Throws Error if the library is missing or refuses, DoesNotFitError if
  // its scratch memory does not fit.
  explicit CusparseSpmm(const CusparseArgs& args);
  ~CusparseSpmm();
  CusparseSpmm(const CusparseSpmm&) = delete;
  CusparseSpmm& operator=(const CusparseSpmm&) = delete;

  // Enqueues the product by kAlgorithms[algorithm] on the stream.
  void run(std::size_t algorithm);
  // Enqueues the product by the fastest algorithm. The first call finds it, and waits for the GPU.
  void run();

 private:
  cudaStream_t stream_;
  cusparseHandle_t handle_ = nullptr;
  cusparseSpMatDescr_t a_ = nullptr;
  cusparseDnMatDescr_t x_ = nullptr, y_ = nullptr;
  std::array<DeviceArray<std::byte>, kAlgorithms.size()> scratch_;
  int fastest_ = -1;
};

}  // namespace plait
