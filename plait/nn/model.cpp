#include "plait/nn/model.h"

#include <algorithm>
#include <limits>

#include "plait/base/error.h"
#include "plait/nn/random.h"

namespace plait {

void check_model_kind(const std::string& kind) {
  require<UsageError>(kind == "gcn" || kind == "mlp", "model '{}' is unknown; use gcn or mlp",
                      kind);
}

Model::Model(const ModelConfig& config, const torch::Device& device) : config_(config) {
  check_model_kind(config.kind);
  require<UsageError>(config.layers >= 1, "{} layers were asked for; use at least 1",
                      config.layers);
  require<UsageError>(config.hidden >= 1, "{} hidden features were asked for; use at least 1",
                      config.hidden);
  require<UsageError>(config.inputs >= 1 && config.outputs >= 1,
                      "a model needs features and classes, but got {} and {}", config.inputs,
                      config.outputs);
  for (int l = 0; l < config.layers; ++l) {
    const std::int64_t in = l == 0 ? config.inputs : config.hidden;
    const std::int64_t out = l + 1 == config.layers ? config.outputs : config.hidden;
    torch::Tensor weight = torch::empty({out, in});
    glorot_uniform(config.seed, static_cast<std::uint32_t>(l), in, out,
                   {weight.mutable_data_ptr<float>(), static_cast<std::size_t>(weight.numel())});
    weights_.push_back(weight.to(device).requires_grad_());
    biases_.push_back(torch::zeros({out}, device).requires_grad_());
  }
}

ShardOptions Model::shard_options() const { return {.one_loop_each = config_.kind == "gcn"}; }

// X W moves rows of the output's width, and X first those of the input's: the narrower goes.
bool Model::transforms_first(int layer, bool sparse) const {
  const torch::Tensor& w = weight(layer);
  return (layer == 0 && sparse) || w.size(0) <= w.size(1);
}

std::uint64_t Model::aggregated_width(bool sparse_input) const {
  std::int64_t widest = 0;
  for (int l = 0; l < config_.layers; ++l)
    widest = std::max(widest, weight(l).size(transforms_first(l, sparse_input) ? 0 : 1));
  return config_.kind == "mlp" ? 0 : static_cast<std::uint64_t>(widest);
}

torch::Tensor Model::forward(const InputFeatures& input,
                             const c10::intrusive_ptr<GraphHandle>& graph, DropoutStep step) const {
  const auto normalization = config_.kind == "gcn" ? graph->gcn_normalization() : torch::Tensor();
  const auto propagate = [&](const torch::Tensor& x) {
    if (config_.kind == "mlp") return x;
    return aggregate(x, graph, true, normalization, normalization);
  };
  torch::Tensor h;
  for (int l = 0; l < config_.layers; ++l) {
    step.layer = static_cast<std::uint32_t>(l);
    if (l > 0) h = drop(h, input.vertices(), step);
    if (transforms_first(l, input.is_sparse()))
      h = propagate(l == 0 ? input.times(weight(l), step) : h.matmul(weight(l).t())) + bias(l);
    else
      h = torch::linear(propagate(l == 0 ? input.dense(step) : h), weight(l), bias(l));
    if (l + 1 < config_.layers) h = h.relu();
  }
  return h;
}

std::vector<std::pair<std::string, torch::Tensor>> Model::named_parameters() const {
  std::vector<std::pair<std::string, torch::Tensor>> named;
  for (int l = 0; l < config_.layers; ++l) {
    named.emplace_back(fmt::format("convs.{}.lin.weight", l), weight(l));
    named.emplace_back(fmt::format("convs.{}.bias", l), bias(l));
  }
  return named;
}

std::vector<torch::Tensor> Model::parameters() const {
  std::vector<torch::Tensor> list;
  for (const auto& [name, p] : named_parameters()) list.push_back(p);
  return list;
}

}  // namespace plait
