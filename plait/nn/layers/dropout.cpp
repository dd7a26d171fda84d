#include "plait/nn/layers/dropout.h"

#include "plait/base/profile.h"
#include "plait/kernels/cuda/dropout.h"
#include "plait/nn/layers/linear_map.h"
#include "plait/nn/operations/torch_device.h"

namespace plait {

torch::Tensor mask_rows(const torch::Tensor& x, const VertexList& vertices,
                        const DropoutStep& step) {
  const Timed timed("dropout");
  torch::Tensor y = torch::empty_like(x);
  const DropoutRows rows{.vertices = ids_of(vertices),
                         .rows = static_cast<std::uint64_t>(x.size(0)),
                         .width = static_cast<std::uint64_t>(x.size(1)),
                         .x = x.const_data_ptr<float>(),
                         .y = y.mutable_data_ptr<float>()};
  if (x.is_cuda()) {
    const OnGpuOf gpu(x.device());
    gpu_drop_rows(step, rows, current_stream(x.device()));
  } else {
    drop_rows(step, rows);
  }
  return y;
}

torch::Tensor drop(const torch::Tensor& x, const VertexList& vertices, const DropoutStep& step) {
  if (!step.active()) return x;
  // The gradient draws the mask again rather than keeping it.
  const auto mask = [vertices, step](const torch::Tensor& t) {
    return mask_rows(t, vertices, step);
  };
  return linear_map(x, mask, mask);
}

}  // namespace plait
