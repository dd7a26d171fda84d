// A warp works on a row.
#include "plait/base/cuda/one_each.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/store/cuda/row_norms.cuh"

namespace plait {
namespace {

__device__ float* row_of(const SomeRows& some, std::uint64_t k) {
  return some.x + (some.rows[k] - some.base) * some.columns;
}

__global__ void __launch_bounds__(kThreadsOfItems)
    sums_kernel(const __grid_constant__ NormLimit limit, const __grid_constant__ SomeRows some,
                double* sums) {
  const std::uint64_t k = item_of_thread() / kWarp;
  if (k >= some.count) return;
  const float* const x = row_of(some, k);
  double sum = 0;
  for (std::uint64_t c = threadIdx.x % kWarp; c < some.columns; c += kWarp)
    sum = limit.join(sum, limit.power(x[c]));
  for (int step = kWarp / 2; step > 0; step /= 2)
    sum = limit.join(sum, __shfl_xor_sync(kAll, sum, step));
  if (threadIdx.x % kWarp == 0) sums[k] = sum;
}

__global__ void __launch_bounds__(kThreadsOfItems)
    limit_kernel(const __grid_constant__ NormLimit limit, const __grid_constant__ SomeRows some,
                 const double* sums) {
  const std::uint64_t k = item_of_thread() / kWarp;
  if (k >= some.count) return;
  const double factor = limit.factor(sums[k]);
  if (factor == 1) return;
  float* const x = row_of(some, k);
  for (std::uint64_t c = threadIdx.x % kWarp; c < some.columns; c += kWarp)
    x[c] *= static_cast<float>(factor);
}

}  // namespace

void norm_sums(const NormLimit& limit, const SomeRows& rows, double* sums, cudaStream_t stream) {
  if (rows.count == 0) return;
  sums_kernel<<<blocks_of_items(rows.count * kWarp), kThreadsOfItems, 0, stream>>>(limit, rows,
                                                                                   sums);
  check_cuda(cudaGetLastError(), "norms of rows");
}

void limit_norms(const NormLimit& limit, const SomeRows& rows, const double* sums,
                 cudaStream_t stream) {
  if (rows.count == 0) return;
  limit_kernel<<<blocks_of_items(rows.count * kWarp), kThreadsOfItems, 0, stream>>>(limit, rows,
                                                                                    sums);
  check_cuda(cudaGetLastError(), "norms of rows");
}

}  // namespace plait
