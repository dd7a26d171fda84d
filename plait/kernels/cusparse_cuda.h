// cuSPARSE's SpMM, to compare with: the best of its algorithms for CSR, each with its
// preprocessing, for row-major fp32 with 32-bit indices. The library is found at run time.
#pragma once

#include <cusparse.h>

#include <array>
#include <cstdint>

#include "plait/base/cuda.h"

namespace plait {

// Device arrays that outlive the product.
struct CusparseArgs {
  std::int64_t rows = 0, columns = 0, edges = 0;
  const std::int32_t* offsets = nullptr;
  const std::uint32_t* slots = nullptr;
  const float* weights = nullptr;  // one an edge
  const float* x = nullptr;        // columns x width, x_stride floats apart
  std::int64_t x_stride = 0;
  float* y = nullptr;  // rows x width
  std::int64_t width = 0;
  cudaStream_t stream = nullptr;
};

class CusparseSpmm {
 public:
  static constexpr std::array kAlgorithms{CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2,
                                          CUSPARSE_SPMM_CSR_ALG3};

  // Throws Error when the library is not there, or refuses.
  explicit CusparseSpmm(const CusparseArgs& args);
  ~CusparseSpmm();
  CusparseSpmm(const CusparseSpmm&) = delete;
  CusparseSpmm& operator=(const CusparseSpmm&) = delete;

  void run(std::size_t algorithm);
  // By the fastest algorithm, found at the first call, which waits for the GPU.
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
