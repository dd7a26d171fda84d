#include "plait/nn/layers/dropout.h"

#include <torch/csrc/autograd/custom_function.h>

#include "plait/base/profile.h"
#include "plait/kernels/cuda/dropout.h"
#include "plait/nn/layers/linear_map.h"
#include "plait/nn/operations/torch_device.h"

namespace plait {

torch::Tensor mask_rows(const torch::Tensor& x, const VertexList& vertices, const DropoutStep& step,
                        bool relu) {
  const Timed timed("dropout");
  torch::Tensor y = torch::empty_like(x);
  const DropoutRows rows{.vertices = ids_of(vertices),
                         .rows = static_cast<std::uint64_t>(x.size(0)),
                         .width = static_cast<std::uint64_t>(x.size(1)),
                         .x = x.const_data_ptr<float>(),
                         .y = y.mutable_data_ptr<float>(),
                         .relu = relu};
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

namespace {

struct DropReluFunction : torch::autograd::Function<DropReluFunction> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const VertexList& vertices, const DropoutStep& step) {
    torch::Tensor y = mask_rows(x.contiguous(), vertices, step, true);
    context->save_for_backward({y});
    context->saved_data["scale"] = double{step.dropout->scale()};
    return y;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::Tensor y = context->get_saved_variables()[0];
    const torch::Tensor gradient = gradients[0].contiguous();
    torch::Tensor result = torch::empty_like(gradient);
    const DropReluGradient args{
        .count = static_cast<std::uint64_t>(y.numel()),
        .y = y.const_data_ptr<float>(),
        .gradient = gradient.const_data_ptr<float>(),
        .result = result.mutable_data_ptr<float>(),
        .scale = static_cast<float>(context->saved_data["scale"].toDouble())};
    if (y.is_cuda()) {
      const OnGpuOf gpu(y.device());
      gpu_drop_relu_gradient(args, current_stream(y.device()));
    } else {
      drop_relu_gradient(args);
    }
    return {result, {}, {}};
  }
};

}  // namespace

torch::Tensor drop_relu(const torch::Tensor& x, const VertexList& vertices,
                        const DropoutStep& step) {
  if (!step.active()) return x.relu();
  return DropReluFunction::apply(x, vertices, step);
}

}  // namespace plait
