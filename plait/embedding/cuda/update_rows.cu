// A thread changes, or makes, one number of a row.
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/one_each.cuh"
#include "plait/embedding/cuda/update_rows.h"

namespace plait {
namespace {

template <class T>
__global__ void __launch_bounds__(kThreadsOfItems)
    update_kernel(const __grid_constant__ RowUpdate u) {
  const std::uint64_t i = item_of_thread();
  if (i >= u.count * u.width) return;
  const auto row = static_cast<std::uint64_t>(u.rows[i / u.width]);
  update_number<T>(u, row * u.width + i % u.width, u.gradients[i]);
}

template <class T>
__global__ void __launch_bounds__(kThreadsOfItems)
    first_kernel(const __grid_constant__ FirstWeights of) {
  const std::uint64_t i = item_of_thread();
  if (i < of.rows * of.columns)
    static_cast<T*>(of.weights)[i] = rounded<T>(first_weight(of, i / of.columns, i % of.columns));
}

}  // namespace

void gpu_fill_first_weights(const FirstWeights& of, void* stream) {
  const std::uint64_t numbers = of.rows * of.columns;
  if (numbers == 0) return;
  with_number(of.type, [&]<class T>(T) {
    first_kernel<T>
        <<<blocks_of_items(numbers), kThreadsOfItems, 0, static_cast<cudaStream_t>(stream)>>>(of);
  });
  check_cuda(cudaGetLastError(), "the first weights");
}

void gpu_update_rows(const RowUpdate& update, void* stream) {
  const std::uint64_t numbers = update.count * update.width;
  if (numbers == 0) return;
  with_number(update.type, [&]<class T>(T) {
    update_kernel<T>
        <<<blocks_of_items(numbers), kThreadsOfItems, 0, static_cast<cudaStream_t>(stream)>>>(
            update);
  });
  check_cuda(cudaGetLastError(), "changing rows");
}

}  // namespace plait
