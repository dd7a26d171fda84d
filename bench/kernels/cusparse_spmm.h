// cuSPARSE's SpMM on the same arrays as Plait's: the best of its algorithms for CSR, each with its
// preprocessing, for row-major fp32 with 32-bit indices.
#pragma once

#include <cusparse.h>

#include <array>
#include <cstdint>
#include <vector>

#include "plait/base/cuda.h"
#include "plait/base/error.h"

namespace plait {

class CusparseSpmm {
 public:
  static constexpr std::array kAlgorithms{CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2,
                                          CUSPARSE_SPMM_CSR_ALG3};

  // Device arrays; offsets 32 bit. They must outlive this.
  CusparseSpmm(std::int64_t rows, std::int64_t edges, const std::int32_t* offsets,
               const std::uint32_t* columns, const float* weights, const float* x, float* y,
               std::int64_t width) {
    check(cusparseCreate(&handle_));
    check(cusparseCreateCsr(&a_, rows, rows, edges, const_cast<std::int32_t*>(offsets),
                            const_cast<std::uint32_t*>(columns), const_cast<float*>(weights),
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                            CUDA_R_32F));
    check(cusparseCreateDnMat(&x_, rows, width, width, const_cast<float*>(x), CUDA_R_32F,
                              CUSPARSE_ORDER_ROW));
    check(cusparseCreateDnMat(&y_, rows, width, width, y, CUDA_R_32F, CUSPARSE_ORDER_ROW));
    for (std::size_t k = 0; k < kAlgorithms.size(); ++k) {
      std::size_t bytes = 0;
      check(cusparseSpMM_bufferSize(handle_, kAsIs, kAsIs, &kOne, a_, x_, &kZero, y_, CUDA_R_32F,
                                    kAlgorithms[k], &bytes));
      scratch_[k] = DeviceArray<std::byte>(bytes);
      check(cusparseSpMM_preprocess(handle_, kAsIs, kAsIs, &kOne, a_, x_, &kZero, y_, CUDA_R_32F,
                                    kAlgorithms[k], scratch_[k].data()));
    }
  }
  ~CusparseSpmm() {
    cusparseDestroySpMat(a_);
    cusparseDestroyDnMat(x_);
    cusparseDestroyDnMat(y_);
    cusparseDestroy(handle_);
  }
  CusparseSpmm(const CusparseSpmm&) = delete;
  CusparseSpmm& operator=(const CusparseSpmm&) = delete;

  void run(std::size_t algorithm) {
    check(cusparseSpMM(handle_, kAsIs, kAsIs, &kOne, a_, x_, &kZero, y_, CUDA_R_32F,
                       kAlgorithms[algorithm], scratch_[algorithm].data()));
  }

 private:
  static constexpr cusparseOperation_t kAsIs = CUSPARSE_OPERATION_NON_TRANSPOSE;
  static constexpr float kOne = 1, kZero = 0;

  static void check(cusparseStatus_t status) {
    require(status == CUSPARSE_STATUS_SUCCESS, "cuSPARSE: {}", cusparseGetErrorString(status));
  }

  cusparseHandle_t handle_ = nullptr;
  cusparseSpMatDescr_t a_ = nullptr;
  cusparseDnMatDescr_t x_ = nullptr, y_ = nullptr;
  std::array<DeviceArray<std::byte>, kAlgorithms.size()> scratch_;
};

}  // namespace plait
