#include "plait/nn/layers/norm.h"

#include "plait/base/parallel.h"
#include "plait/nn/operations/kept_graph.h"

namespace plait {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kMomentum = 0.1, kEpsilon = 1e-5;

// Returns the sum of each column of a or, with b, of their products. Sums are made in double, so
// that they depend little on the way in which rows are shared, and by blocks of rows.
torch::Tensor sums_on_cpu(const torch::Tensor& a, const torch::Tensor& b) {
  constexpr std::size_t kBlock = 1 << 10;
  const auto rows = static_cast<std::size_t>(a.size(0)),
             width = static_cast<std::size_t>(a.size(1));
  const auto blocks = static_cast<std::int64_t>((rows + kBlock - 1) / kBlock);
  torch::Tensor of_blocks = torch::zeros({blocks, a.size(1)}, torch::kFloat64);
  auto* const sums = of_blocks.mutable_data_ptr<double>();
  const auto* const x = a.const_data_ptr<float>();
  const auto* const y = b.defined() ? b.const_data_ptr<float>() : nullptr;
  parallel_blocks(rows, kBlock, [&](std::size_t begin, std::size_t end) {
    double* const sum = sums + begin / kBlock * width;
    for (std::size_t at = begin * width; at < end * width; at += width)
      for (std::size_t c = 0; c < width; ++c)
        sum[c] += y == nullptr ? double{x[at + c]} : double{x[at + c]} * double{y[at + c]};
  });
  return of_blocks.sum(0);
}

// Does so on either device. A GPU copies the numbers that it sums in double into an array of
// double: first it sums 256 rows at a time.
torch::Tensor sums(const torch::Tensor& a, const torch::Tensor& b = {}) {
  if (a.is_cpu()) return sums_on_cpu(a.contiguous(), b.defined() ? b.contiguous() : b);
  constexpr std::int64_t kAtOnce = 256;
  const torch::Tensor all = b.defined() ? a * b : a;
  const std::int64_t whole = all.size(0) / kAtOnce, width = all.size(1);
  const torch::Tensor of_many =
      all.narrow(0, 0, whole * kAtOnce).reshape({whole, kAtOnce, width}).sum(1);
  const torch::Tensor rest = all.slice(0, whole * kAtOnce).sum(0, true);
  return torch::cat({of_many, rest}).sum(0, false, torch::kFloat64);
}

// Collective. Returns the means over all vertices of columns whose sums on this rank, in double,
// are given, and lost. Ranks on the CPU add these in double too, so that all numbers of ranks round
// alike.
torch::Tensor means_of(torch::Tensor sums, const GraphRef& graph) {
  const auto count = static_cast<double>(graph->vertices());
  if (sums.is_cpu()) {
    graph->sum_on_hosts(sums);
    return (sums / count).to(torch::kFloat32);
  }
  sums = sums.to(torch::kFloat32);
  graph->all_reduce_sum(sums);
  return sums / count;
}

// Batch normalisation in training, as one operation that keeps one array for its gradient: the
// normalised rows. Gives y, and the mean and the variance of each column.
struct BatchFunction : torch::autograd::Function<BatchFunction> {
  static variable_list forward(AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight, const torch::Tensor& bias,
                               const GraphRef& graph) {
    const torch::Tensor mean = means_of(sums(x), graph);
    torch::Tensor normal = x - mean;  // centred, until its variance is known
    const torch::Tensor variance = means_of(sums(normal, normal), graph);
    const torch::Tensor scale = (variance + kEpsilon).rsqrt();
    normal.mul_(scale);
    context->save_for_backward({normal, weight * scale});
    keep_graph(context, graph);
    context->mark_non_differentiable({mean, variance});
    return {torch::addcmul(bias, normal, weight), mean, variance};
  }

  // With means over the rows of all ranks, the gradient of a row of x is
  //   weight scale (dy - mean(dy) - normal mean(dy normal)).
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::Tensor &normal = saved[0], &factor = saved[1], &dy = gradients[0];
    const torch::Tensor own = torch::cat({sums(dy), sums(dy, normal)});
    const auto of = own.to(torch::kFloat32).chunk(2);
    const auto means = means_of(own, kept_graph(context)).chunk(2);
    return {torch::addcmul(dy - means[0], normal, means[1], -1).mul_(factor), of[1], of[0], {}};
  }
};

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
  if (!trains)
    return torch::addcmul(bias_, x - running_mean_,
                          (running_variance_ + kEpsilon).rsqrt() * weight_);
  const torch::autograd::variable_list found = BatchFunction::apply(x, weight_, bias_, graph);
  learn(found[1], found[2], static_cast<double>(graph->vertices()));
  return found[0];
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
