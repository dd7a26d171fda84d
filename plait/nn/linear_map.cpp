#include "plait/nn/linear_map.h"

#include <torch/csrc/autograd/custom_function.h>

namespace plait {
namespace {

struct Adjoint : torch::CustomClassHolder {
  explicit Adjoint(TensorMap m) : map(std::move(m)) {}
  TensorMap map;
};

struct LinearMapFunction : torch::autograd::Function<LinearMapFunction> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const TensorMap& map, TensorMap adjoint) {
    context->saved_data["adjoint"] =
        c10::IValue::make_capsule(c10::make_intrusive<Adjoint>(std::move(adjoint)));
    return map(x.contiguous());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto capsule = context->saved_data["adjoint"].toCapsule();
    return {static_cast<const Adjoint&>(*capsule).map(gradients[0].contiguous()), {}, {}};
  }
};

}  // namespace

torch::Tensor linear_map(const torch::Tensor& x, TensorMap map, TensorMap adjoint) {
  return LinearMapFunction::apply(x, map, std::move(adjoint));
}

}  // namespace plait
