#include "plait/nn/dropout.h"

#include "plait/kernels/gpu_dropout.h"
#include "plait/nn/gpu_torch.h"
#include "plait/nn/linear_map.h"

namespace plait {

torch::Tensor drop(const torch::Tensor& x, const VertexList& vertices, const DropoutStep& step) {
  if (!step.active()) return x;
  // Its own adjoint. The gradient draws the mask again rather than keeping it.
  const auto mask = [vertices, step](const torch::Tensor& t) {
    torch::Tensor y = torch::empty_like(t);
    const DropoutRows rows{.vertices = ids_of(vertices),
                           .rows = static_cast<std::uint64_t>(t.size(0)),
                           .width = static_cast<std::uint64_t>(t.size(1)),
                           .x = t.const_data_ptr<float>(),
                           .y = y.mutable_data_ptr<float>()};
    if (t.is_cuda())
      gpu_drop_rows(step, rows, current_stream(t.device()));
    else
      drop_rows(step, rows);
    return y;
  };
  return linear_map(x, mask, mask);
}

}  // namespace plait
