#include "plait/base/error.h"
#include "plait/base/library.h"
#include "plait/kernels/cuda/cusparse.cuh"

namespace plait {
namespace {

constexpr cusparseOperation_t kAsIs = CUSPARSE_OPERATION_NON_TRANSPOSE;
constexpr float kOne = 1, kZero = 0;

struct Library {
  decltype(cusparseCreate)* create;
  decltype(cusparseDestroy)* destroy;
  decltype(cusparseSetStream)* set_stream;
  decltype(cusparseCreateCsr)* create_csr;
  decltype(cusparseDestroySpMat)* destroy_csr;
  decltype(cusparseCreateDnMat)* create_dense;
  decltype(cusparseDestroyDnMat)* destroy_dense;
  decltype(cusparseSpMM_bufferSize)* scratch_size;
  decltype(cusparseSpMM_preprocess)* preprocess;
  decltype(cusparseSpMM)* multiply;
  decltype(cusparseGetErrorString)* error;
};

const Library& library() {
  static const Library loaded = [] {
    const LibraryFunctions functions(kCusparse, "it comes with CUDA and with torch");
    Library l{};
    functions.find(l.create, "cusparseCreate");
    functions.find(l.destroy, "cusparseDestroy");
    functions.find(l.set_stream, "cusparseSetStream");
    functions.find(l.create_csr, "cusparseCreateCsr");
    functions.find(l.destroy_csr, "cusparseDestroySpMat");
    functions.find(l.create_dense, "cusparseCreateDnMat");
    functions.find(l.destroy_dense, "cusparseDestroyDnMat");
    functions.find(l.scratch_size, "cusparseSpMM_bufferSize");
    functions.find(l.preprocess, "cusparseSpMM_preprocess");
    functions.find(l.multiply, "cusparseSpMM");
    functions.find(l.error, "cusparseGetErrorString");
    return l;
  }();
  return loaded;
}

void check(cusparseStatus_t status) {
  require(status == CUSPARSE_STATUS_SUCCESS, "cuSPARSE: {}", library().error(status));
}

}  // namespace

CusparseSpmm::CusparseSpmm(const CusparseArgs& args) : stream_(args.stream) {
  const Library& l = library();
  check(l.create(&handle_));
  check(l.set_stream(handle_, stream_));
  check(l.create_csr(&a_, args.rows, args.columns, args.edges,
                     const_cast<std::int32_t*>(args.offsets),
                     const_cast<std::uint32_t*>(args.slots), const_cast<float*>(args.weights),
                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  check(l.create_dense(&x_, args.columns, args.width, args.x_stride, const_cast<float*>(args.x),
                       CUDA_R_32F, CUSPARSE_ORDER_ROW));
  check(l.create_dense(&y_, args.rows, args.width, args.width, args.y, CUDA_R_32F,
                       CUSPARSE_ORDER_ROW));
  for (std::size_t k = 0; k < kAlgorithms.size(); ++k) {
    std::size_t bytes = 0;
    check(l.scratch_size(handle_, kAsIs, kAsIs, &kOne, a_, x_, &kZero, y_, CUDA_R_32F,
                         kAlgorithms[k], &bytes));
    scratch_[k] = DeviceArray<std::byte>(bytes);
    check(l.preprocess(handle_, kAsIs, kAsIs, &kOne, a_, x_, &kZero, y_, CUDA_R_32F, kAlgorithms[k],
                       scratch_[k].data()));
  }
}

CusparseSpmm::~CusparseSpmm() {
  const Library& l = library();
  l.destroy_csr(a_);
  l.destroy_dense(x_);
  l.destroy_dense(y_);
  l.destroy(handle_);
}

void CusparseSpmm::run(std::size_t algorithm) {
  check(library().multiply(handle_, kAsIs, kAsIs, &kOne, a_, x_, &kZero, y_, CUDA_R_32F,
                           kAlgorithms[algorithm], scratch_[algorithm].data()));
}

void CusparseSpmm::run() {
  if (fastest_ < 0) {
    float least = 0;
    DeviceEvent start, stop;
    for (int k = 0; k < static_cast<int>(kAlgorithms.size()); ++k)
      for (int repetition = 0; repetition < 3; ++repetition) {
        start.record(stream_);
        run(static_cast<std::size_t>(k));
        stop.record(stream_);
        const float ms = stop.since(start);
        if (fastest_ < 0 || ms < least) least = ms, fastest_ = k;
      }
  }
  run(static_cast<std::size_t>(fastest_));
}

}  // namespace plait
