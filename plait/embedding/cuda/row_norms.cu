// A warp works on a row.
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/embedding/cuda/row_norms.cuh"

namespace plait {
namespace {

template <class T>
__device__ T* row_of(const SomeRows& some, std::uint64_t k) {
  return static_cast<T*>(some.piece.at) + (some.rows[k] - some.base) * some.piece.columns;
}

template <class T>
__global__ void __launch_bounds__(kThreadsOfItems)
    sums_kernel(const __grid_constant__ NormLimit limit, const __grid_constant__ SomeRows some,
                double* sums) {
  const std::uint64_t k = item_of_thread() / kWarp;
  if (k >= some.count) return;
  const T* const x = row_of<T>(some, k);
  double sum = 0;
  for (std::uint64_t c = threadIdx.x % kWarp; c < some.piece.columns; c += kWarp)
    sum = limit.join(sum, limit.power(widened(x[c])));
  for (int step = kWarp / 2; step > 0; step /= 2)
    sum = limit.join(sum, __shfl_xor_sync(kAll, sum, step));
  if (threadIdx.x % kWarp == 0) sums[k] = sum;
}

template <class T>
__global__ void __launch_bounds__(kThreadsOfItems)
    limit_kernel(const __grid_constant__ NormLimit limit, const __grid_constant__ SomeRows some,
                 const double* sums) {
  const std::uint64_t k = item_of_thread() / kWarp;
  if (k >= some.count) return;
  const double factor = limit.factor(sums[k]);
  if (factor == 1) return;
  T* const x = row_of<T>(some, k);
  for (std::uint64_t c = threadIdx.x % kWarp; c < some.piece.columns; c += kWarp)
    x[c] = rounded<T>(widened(x[c]) * static_cast<float>(factor));
}

}  // namespace

void norm_sums(const NormLimit& limit, const SomeRows& rows, double* sums, cudaStream_t stream) {
  if (rows.count == 0) return;
  with_number(rows.piece.type, [&]<class T>(T) {
    sums_kernel<T>
        <<<blocks_of_items(rows.count * kWarp), kThreadsOfItems, 0, stream>>>(limit, rows, sums);
  });
  check_cuda(cudaGetLastError(), "norms of rows");
}

void limit_norms(const NormLimit& limit, const SomeRows& rows, const double* sums,
                 cudaStream_t stream) {
  if (rows.count == 0) return;
  with_number(rows.piece.type, [&]<class T>(T) {
    limit_kernel<T>
        <<<blocks_of_items(rows.count * kWarp), kThreadsOfItems, 0, stream>>>(limit, rows, sums);
  });
  check_cuda(cudaGetLastError(), "norms of rows");
}

}  // namespace plait
