#include "plait/nn/layers/linear_map.h"

#include <torch/csrc/autograd/custom_function.h>

namespace plait {
namespace {

struct Maps : torch::CustomClassHolder {
  Maps(TensorMap forth, TensorMap back) : map(std::move(forth)), adjoint(std::move(back)) {}
  TensorMap map, adjoint;
};

struct LinearMapFunction : torch::autograd::Function<LinearMapFunction> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const c10::intrusive_ptr<Maps>& maps) {
    context->saved_data["maps"] = c10::IValue::make_capsule(maps);
    return maps->map(x.contiguous());
  }
  // The adjoint is a linear map too, so that gradients of gradients are right.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = context->saved_data["maps"].toCapsule();
    const auto& maps = static_cast<const Maps&>(*capsule);
    return {linear_map(gradients[0], maps.adjoint, maps.map), {}};
  }
};

}  // namespace

torch::Tensor linear_map(const torch::Tensor& x, TensorMap map, TensorMap adjoint) {
  return LinearMapFunction::apply(x, c10::make_intrusive<Maps>(std::move(map), std::move(adjoint)));
}

}  // namespace plait
