// A thread draws one Philox block: four columns of a row. As many lanes work on a row as it has
// groups of four columns, up to a warp, so that narrow rows leave none idle.
#include <algorithm>
#include <bit>

#include "plait/base/cuda/cuda.cuh"
#include "plait/base/cuda/warp.cuh"
#include "plait/kernels/cuda/dropout.h"

namespace plait {
namespace {

constexpr unsigned kThreads = 256;

// Whole: rows begin on 16 bytes, and their width is a multiple of four.
template <bool kWhole>
__global__ void __launch_bounds__(kThreads)
    drop_rows_kernel(const Dropout dropout, const DropoutStep step, const DropoutRows a) {
  const std::uint64_t row = blockIdx.x * std::uint64_t{blockDim.y} + threadIdx.y;
  if (row >= a.rows) return;
  const std::uint64_t vertex = a.vertices[row];
  const float* const x = a.x + row * a.width;
  float* const y = a.y + row * a.width;
  const std::uint32_t epoch = step.current_epoch(), layer = step.layer;
  const auto passed = [&](float value) { return a.relu && value < 0 ? 0.0f : value; };
  for (std::uint64_t c = 4 * threadIdx.x; c < a.width; c += 4 * blockDim.x) {
    const Philox::Block four = dropout.numbers(vertex, epoch, layer, static_cast<std::uint32_t>(c));
    if constexpr (kWhole) {
      const float4 value = *reinterpret_cast<const float4*>(x + c);
      *reinterpret_cast<float4*>(y + c) = {
          passed(value.x) * dropout.factor(four[0]), passed(value.y) * dropout.factor(four[1]),
          passed(value.z) * dropout.factor(four[2]), passed(value.w) * dropout.factor(four[3])};
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (c + k < a.width) y[c + k] = passed(x[c + k]) * dropout.factor(four[k]);
    }
  }
}

// A thread takes four elements, if all three arrays begin on 16 bytes, and one of the last few.
__global__ void __launch_bounds__(kThreads)
    drop_relu_gradient_kernel(const DropReluGradient a, std::uint64_t fours) {
  const std::uint64_t i = blockIdx.x * std::uint64_t{kThreads} + threadIdx.x;
  const auto of = [&](float y, float gradient) { return y > 0 ? gradient * a.scale : 0.0f; };
  if (i < fours) {
    const auto y = reinterpret_cast<const float4*>(a.y)[i];
    const auto g = reinterpret_cast<const float4*>(a.gradient)[i];
    reinterpret_cast<float4*>(a.result)[i] = {of(y.x, g.x), of(y.y, g.y), of(y.z, g.z),
                                              of(y.w, g.w)};
  } else if (const std::uint64_t at = 4 * fours + (i - fours); at < a.count) {
    a.result[at] = of(a.y[at], a.gradient[at]);
  }
}

}  // namespace

void gpu_drop_relu_gradient(const DropReluGradient& a, void* stream) {
  if (a.count == 0) return;
  const bool whole = on_16_bytes(a.y) && on_16_bytes(a.gradient) && on_16_bytes(a.result);
  const std::uint64_t fours = whole ? a.count / 4 : 0, threads = fours + (a.count - 4 * fours);
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  drop_relu_gradient_kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(a, fours);
  check_cuda(cudaGetLastError(), "dropout");
}

void gpu_drop_rows(const DropoutStep& step, const DropoutRows& a, void* stream) {
  if (a.rows == 0 || a.width == 0) return;
  const auto lanes =
      static_cast<unsigned>(std::bit_ceil(std::min<std::uint64_t>((a.width + 3) / 4, kWarp)));
  const dim3 block(lanes, kThreads / lanes);
  const auto blocks = static_cast<unsigned>((a.rows + block.y - 1) / block.y);
  const bool whole = a.width % 4 == 0 && on_16_bytes(a.x) && on_16_bytes(a.y);
  const auto kernel = whole ? drop_rows_kernel<true> : drop_rows_kernel<false>;
  kernel<<<blocks, block, 0, static_cast<cudaStream_t>(stream)>>>(*step.dropout, step, a);
  check_cuda(cudaGetLastError(), "dropout");
}

}  // namespace plait
