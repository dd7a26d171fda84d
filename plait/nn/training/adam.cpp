#include "plait/nn/training/adam.h"

#include <ATen/ops/_fused_adam.h>
#include <torch/utils.h>

#include <cmath>

#include "plait/base/error.h"

namespace plait {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

}  // namespace

Adam::Adam(std::vector<torch::Tensor> parameters, const AdamOptions& options)
    : options_(options),
      parameters_(std::move(parameters)),
      steps_(torch::zeros({}, parameters_.at(0).options().requires_grad(false))) {
  require<UsageError>(options.learning_rate >= 0, "learning rate {} is not 0 or more",
                      options.learning_rate);
  require<UsageError>(options.weight_decay >= 0, "weight decay {} is not 0 or more",
                      options.weight_decay);
  for (const torch::Tensor& p : parameters_) {
    exp_avg_.push_back(torch::zeros_like(p));
    exp_avg_sq_.push_back(torch::zeros_like(p));
  }
}

void Adam::step() {
  const torch::NoGradGuard no_grad;
  steps_.add_(1);
  step_group(0, options_.decayed, options_.weight_decay);
  step_group(options_.decayed, parameters_.size(), 0);
}

void Adam::step_group(std::size_t begin, std::size_t end, double weight_decay) {
  if (begin == end) return;
  if (steps_.is_cuda()) {
    const auto group = [=](const std::vector<torch::Tensor>& all) {
      return at::TensorList(all).slice(begin, end - begin);
    };
    std::vector<torch::Tensor> gradients;
    for (const torch::Tensor& p : group(parameters_)) gradients.push_back(p.grad());
    const std::vector<torch::Tensor> steps(gradients.size(), steps_);
    at::_fused_adam_(group(parameters_), gradients, group(exp_avg_), group(exp_avg_sq_), {}, steps,
                     options_.learning_rate, kBeta1, kBeta2, weight_decay, kEpsilon,
                     /*amsgrad=*/false, /*maximize=*/false);
    return;
  }
  const auto steps = steps_.item<double>();
  const double step_size = options_.learning_rate / (1 - std::pow(kBeta1, steps));
  const double spread = std::sqrt(1 - std::pow(kBeta2, steps));
  for (std::size_t i = begin; i < end; ++i) {
    torch::Tensor gradient = parameters_[i].grad();
    if (weight_decay != 0) gradient = gradient.add(parameters_[i], weight_decay);
    exp_avg_[i].mul_(kBeta1).add_(gradient, 1 - kBeta1);
    exp_avg_sq_[i].mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    const torch::Tensor scale = (exp_avg_sq_[i].sqrt() / spread).add_(kEpsilon);
    parameters_[i].addcdiv_(exp_avg_[i], scale, -step_size);
  }
}

}  // namespace plait
