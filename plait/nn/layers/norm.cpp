#include "plait/nn/layers/norm.h"

namespace plait {
namespace {

constexpr double kMomentum = 0.1, kEpsilon = 1e-5;

// Sums in double, so that the sum depends little on the way in which rows are shared; by blocks of
// rows, because a GPU copies the numbers that it sums into an array of double.
torch::Tensor sum_of_rows(const torch::Tensor& t) {
  constexpr std::int64_t kBlock = 1 << 16;
  torch::Tensor sum;
  for (const torch::Tensor& block : t.split(kBlock)) {
    const torch::Tensor of_block = block.sum(0, false, torch::kFloat64);
    sum = sum.defined() ? sum + of_block : of_block;
  }
  return sum;
}

}  // namespace

Norm::Norm(NormKind kind, std::int64_t width, const torch::Device& device)
    : kind_(kind),
      weight_(torch::ones({width}, device).requires_grad_()),
      bias_(torch::zeros({width}, device).requires_grad_()) {
  if (kind != NormKind::batch) return;
  running_mean_ = torch::zeros({width}, device);
  running_variance_ = torch::ones({width}, device);
}

torch::Tensor Norm::operator()(const torch::Tensor& x, const GraphRef& graph, bool trains) const {
  if (!graph->exact() && kind_ == NormKind::layer)
    return torch::layer_norm(x, {x.size(1)}, weight_, bias_, kEpsilon);
  if (graph->exact())
    return add_bias(scale_columns(exactly_normalized(x, graph, trains), weight_, graph), bias_,
                    graph);
  torch::Tensor centred, variance;
  if (trains) {
    const auto count = static_cast<double>(graph->vertices());
    const auto sum = [&](const torch::Tensor& t) {
      return sum_over_ranks(sum_of_rows(t).to(torch::kFloat32), graph);
    };
    const torch::Tensor mean = sum(x) / count;
    centred = x - mean;
    variance = sum(centred.square()) / count;
    learn(mean, variance, count);
  } else {
    centred = x - running_mean_;
    variance = running_variance_;
  }
  return centred * (variance + kEpsilon).rsqrt() * weight_ + bias_;
}

torch::Tensor Norm::exactly_normalized(const torch::Tensor& x, const GraphRef& graph,
                                       bool trains) const {
  if (kind_ == NormKind::layer) return torch::layer_norm(x, {x.size(1)}, {}, {}, kEpsilon);
  if (!trains) return (x - running_mean_) * (running_variance_ + kEpsilon).rsqrt();
  const auto [mean, variance] = exact_statistics(x, graph);
  learn(mean, variance, static_cast<double>(graph->vertices()));
  return standardize(x, mean, (variance + kEpsilon).rsqrt(), graph);
}

void Norm::learn(const torch::Tensor& mean, const torch::Tensor& variance, double count) const {
  const torch::NoGradGuard no_grad;
  const double unbiased = count / std::max(count - 1, 1.0);
  running_mean_.lerp_(mean, kMomentum);
  running_variance_.lerp_(variance * unbiased, kMomentum);
}

NamedTensors Norm::parameters() const {
  const std::string prefix = kind_ == NormKind::batch ? "module." : "";
  return {{prefix + "weight", weight_}, {prefix + "bias", bias_}};
}

NamedTensors Norm::buffers() const {
  if (kind_ != NormKind::batch) return {};
  return {{"module.running_mean", running_mean_}, {"module.running_var", running_variance_}};
}

}  // namespace plait
