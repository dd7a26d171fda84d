#include "plait/nn/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/profile.h"
#include "plait/base/setting.h"
#include "plait/nn/operations/share_rows.h"
#include "plait/plan/route.h"

namespace plait {
namespace {

// One row per kind.
constexpr std::array kKinds{&kGcnLayer, &kMlpLayer,   &kSageLayer,       &kGinLayer,
                            &kGatLayer, &kGatv2Layer, &kTransformerLayer};

// Returns the names of the kinds for which `holds`, as a help text lists them.
template <class Holds>
std::string names_of(const Holds& holds) {
  std::vector<std::string_view> names;
  for (const LayerKind* kind : kKinds)
    if (holds(*kind)) names.push_back(kind->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void check(const ModelConfig& c) {
  require<UsageError>(c.layers >= 1, "{} layers were asked for; use at least 1", c.layers);
  require<UsageError>(c.hidden >= 1, "{} hidden features were asked for; use at least 1", c.hidden);
  require<UsageError>(c.inputs >= 1 && c.outputs >= 1,
                      "a model needs features and classes, but got {} and {}", c.inputs, c.outputs);
  require<UsageError>(c.heads >= 1 && c.output_heads >= 1,
                      "{} and {} heads were asked for; use at least 1", c.heads, c.output_heads);
  require<UsageError>((c.task == TaskKind::graph_label) == (c.pool != Pool::none),
                      "pool '{}' does not go with {} scores", to_string(c.pool), to_string(c.task));
  require<UsageError>((c.layers == 1 && c.pool == Pool::none) || c.hidden % c.heads == 0,
                      "{} hidden features cannot be shared by {} heads; give a multiple as {}, or "
                      "other {}",
                      c.hidden, c.heads, setting("hidden"), setting("heads"));
  require<UsageError>(c.aggregation == "mean" || c.aggregation == "max" || c.aggregation == "min",
                      "aggregation '{}' is unknown; use mean, max or min", c.aggregation);
  require<UsageError>(c.activation == "relu" || c.activation == "elu",
                      "activation '{}' is unknown; use relu or elu", c.activation);
}

// Tells whether the rows of a layer are scores. With a head, no layer's are.
bool gives_scores(const ModelConfig& c, int layer) {
  return layer + 1 == c.layers && c.pool == Pool::none;
}

LayerShape shape_of(const ModelConfig& c, int layer) {
  const bool last = gives_scores(c, layer);
  return {.in = layer == 0 ? c.inputs : c.hidden,
          .out = last ? c.outputs : c.hidden,
          .heads = last ? c.output_heads : c.heads,
          .concatenated = !last};
}

}  // namespace

std::string model_kinds() {
  return names_of([](const LayerKind&) { return true; });
}

std::string model_kinds(KindTrait trait) {
  return names_of([&](const LayerKind& kind) {
    switch (trait) {
      case KindTrait::heads:
        return kind.has_heads;
      case KindTrait::aggregation:
        return kind.has_aggregation;
      case KindTrait::inner_norm:
        return kind.has_inner_norm;
      case KindTrait::decay_last:
        return kind.defaults.decay_last;
    }
    return false;
  });
}

const LayerKind& layer_kind(const std::string& name) {
  for (const LayerKind* kind : kKinds)
    if (kind->name == name) return *kind;
  throw UsageError(fmt::format("model '{}' is unknown; use {}", name, model_kinds()));
}

const ModelDefaults& model_defaults(const std::string& kind) { return layer_kind(kind).defaults; }

ModelConfig default_model(const std::string& kind) {
  const ModelDefaults& d = model_defaults(kind);
  return {.kind = kind,
          .layers = d.layers,
          .hidden = d.hidden,
          .dropout = d.dropout,
          .pool = d.pool,
          .norm = d.norm,
          .activation = d.activation,
          .heads = d.heads};
}

Model::Model(const ModelConfig& config, const torch::Device& device) : config_(config) {
  const LayerKind& kind = layer_kind(config.kind);
  check(config);
  for (int l = 0; l < config.layers; ++l) {
    const LayerShape shape = shape_of(config, l);
    WeightSource source(config.seed, l, device);
    layers_.push_back(kind.make(config, shape, source));
    const bool projects = config.residual && shape.in != shape.out;
    residuals_.push_back(projects ? source.linear({shape.out, shape.in}, shape.in)
                                  : torch::Tensor());
    if (config.norm != NormKind::none && !gives_scores(config, l))
      norms_.emplace_back(config.norm, shape.out, device);
  }
  if (config.pool != Pool::none) {
    WeightSource source(config.seed, config.layers, device);
    head_.emplace(config, source);
  }
}

ShardOptions shard_options_of(const ModelConfig& config) {
  const LayerKind& kind = layer_kind(config.kind);
  return {.one_loop_each = kind.one_loop_each,
          .slot_vertices = kind.drops_edges && config.dropout > 0};
}

LayerPlan layer_plan_of(const ModelConfig& config, const LayerShape& shape, bool sparse_input) {
  LayerPlan plan = layer_kind(config.kind).plan(config, shape, sparse_input);
  plan.moves_rows = moves_rows(config);
  return plan;
}

std::vector<LayerPlan> layer_plans_of(const ModelConfig& config, bool sparse_input) {
  std::vector<LayerPlan> plans;
  for (int l = 0; l < config.layers; ++l)
    plans.push_back(layer_plan_of(config, shape_of(config, l), l == 0 && sparse_input));
  return plans;
}

std::vector<std::uint64_t> moved_widths_of(const ModelConfig& config, bool sparse_input) {
  std::vector<std::uint64_t> widths;
  for (const LayerPlan& plan : layer_plans_of(config, sparse_input))
    widths.push_back(plan.moved_width);
  return widths;
}

std::vector<EdgeOperation> operations_of(const ModelConfig& config) {
  std::vector<EdgeOperation> all;
  for (const LayerPlan& plan : layer_plans_of(config, false))
    std::ranges::copy(plan.operations, std::back_inserter(all));
  return all;
}

std::uint64_t Model::moved_width(bool sparse_input) const {
  return std::ranges::max(moved_widths_of(config_, sparse_input));
}

torch::Tensor Model::forward(const InputFeatures& input, const GraphRef& graph, DropoutStep step,
                             bool trains, const GraphSet* set) const {
  const DropoutStep head_step = std::exchange(step, head_ ? DropoutStep{} : step);
  const torch::Tensor h =
      forward(input, std::vector<GraphRef>(layers_.size(), graph), step, trains);
  if (!head_) return h;
  require<UsageError>(set != nullptr, "the model scores graphs, and got no set of them");
  return head_->scores(set->pool(h, graph, config_.pool), *set, graph, head_step);
}

torch::Tensor Model::forward(const InputFeatures& input, const std::vector<GraphRef>& graphs,
                             DropoutStep step, bool trains) const {
  const Timed timed("forward");
  require<UsageError>(graphs.size() == layers_.size(), "{} layers got {} graphs", layers_.size(),
                      graphs.size());
  torch::Tensor h;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    step.layer = static_cast<std::uint32_t>(l);
    const GraphRef& graph = graphs[l];
    if (l > 0)
      h = activate_and_drop(h, graphs[l - 1], input.numbers().narrow(0, 0, h.size(0)), step);
    if (l > 0 && graph->shared_rows() != nullptr) h = share_rows(h, graph);
    h = layer_sums(l, l == 0 ? LayerInput(input, step, trains) : LayerInput(h, step, trains),
                   graph);
  }
  return gives_scores(config_, config_.layers - 1) ? h
                                                   : activate(h, config_.activation, graphs.back());
}

torch::Tensor Model::activate_and_drop(const torch::Tensor& h, const GraphRef& graph,
                                       const VertexList& vertices, const DropoutStep& step) const {
  if (config_.activation == "relu") return drop_relu(h, vertices, step);
  return drop(activate(h, config_.activation, graph), vertices, step);
}

torch::Tensor Model::layer_output(std::size_t l, const LayerInput& x, const GraphRef& graph) const {
  const torch::Tensor h = layer_sums(l, x, graph);
  return gives_scores(config_, static_cast<int>(l)) ? h : activate(h, config_.activation, graph);
}

torch::Tensor Model::layer_sums(std::size_t l, const LayerInput& x, const GraphRef& graph) const {
  torch::Tensor h = layers_[l]->forward(x, graph);
  if (config_.residual)
    h = h +
        (residuals_[l].defined() ? x.own_times(residuals_[l], graph) : own_rows(x.dense(), graph));
  const bool normalises = !norms_.empty() && !gives_scores(config_, static_cast<int>(l));
  return normalises ? norms_[l](h, graph, x.trains()) : h;
}

NamedTensors Model::named_parameters() const {
  NamedTensors named;
  for (std::size_t l = 0; l < layers_.size(); ++l)
    add_named(named, fmt::format("convs.{}.", l), layers_[l]->parameters());
  for (std::size_t l = 0; l < residuals_.size(); ++l)
    if (residuals_[l].defined())
      named.emplace_back(fmt::format("residuals.{}.weight", l), residuals_[l]);
  for (std::size_t l = 0; l < norms_.size(); ++l)
    add_named(named, fmt::format("norms.{}.", l), norms_[l].parameters());
  if (head_) add_named(named, "mlp.", head_->parameters());
  return named;
}

std::vector<torch::Tensor> Model::parameters() const {
  std::vector<torch::Tensor> list;
  for (const auto& [name, p] : named_parameters()) list.push_back(p);
  return list;
}

std::size_t Model::decayed_parameters() const {
  std::size_t count = 0;
  const bool all = head_ || model_defaults(config_.kind).decay_last;
  const std::size_t layers = layers_.size() - (all ? 0 : 1);
  for (std::size_t l = 0; l < layers; ++l) count += layers_[l]->parameters().size();
  return count;
}

NamedTensors Model::named_buffers() const {
  NamedTensors named;
  for (std::size_t l = 0; l < layers_.size(); ++l)
    add_named(named, fmt::format("convs.{}.", l), layers_[l]->buffers());
  for (std::size_t l = 0; l < norms_.size(); ++l)
    add_named(named, fmt::format("norms.{}.", l), norms_[l].buffers());
  return named;
}

std::vector<torch::Tensor> Model::state() const {
  std::vector<torch::Tensor> list;
  for (const NamedTensors& some : {named_parameters(), named_buffers()})
    for (const auto& [name, tensor] : some) list.push_back(tensor.detach());
  return list;
}

bool moves_rows(const ModelConfig& config) {
  const auto moves = layer_kind(config.kind).moves_rows;
  return moves != nullptr && moves(config);
}

std::size_t moves_per_step(const ModelConfig& config) {
  std::size_t most = 2;  // forward and backward
  for (const LayerPlan& plan : layer_plans_of(config, false))
    most = std::max(most, plan.operations.size());
  return most;
}

void require_kernels(const ModelConfig& config) {
  const std::vector<LayerPlan> plans = layer_plans_of(config, false);
  for (std::size_t l = 0; l < plans.size(); ++l)
    require<UsageError>(plans[l].refused_on_gpus.empty(), "layer {} of {}: {}", l, config.kind,
                        plans[l].refused_on_gpus);
}

void require_wire_used(const ModelConfig& config, bool sparse_input, const Route& route,
                       int ranks) {
  require_wire_used(route, ranks);
  if (moves_rows(config)) require_rows(route);
  require<UsageError>(
      route.wire == DType::f32 || std::ranges::max(moved_widths_of(config, sparse_input)) > 0,
      "a model of kind {} moves no rows that could cross as {}; use fp32 on the wire", config.kind,
      to_string(route.wire));
}

EdgeMemory edge_memory_of(const ModelConfig& config) {
  EdgeMemory most;
  for (const LayerPlan& plan : layer_plans_of(config, false)) {
    most.scratch = std::max(most.scratch, plan.edge_scratch);
    most.rows_per_sum = std::max(most.rows_per_sum, plan.rows_per_sum);
  }
  return most;
}

std::uint64_t layer_floats(const ModelConfig& config, int layer) {
  const LayerPlan plan = layer_plan_of(config, shape_of(config, layer), false);
  return static_cast<std::uint64_t>(plan.shape.in) + 2 * static_cast<std::uint64_t>(plan.product);
}

ModelSize size_of_model(const ModelConfig& config) {
  ModelSize size{0, 0};
  for (const LayerPlan& plan : layer_plans_of(config, false)) {
    const auto in = static_cast<double>(plan.shape.in), out = static_cast<double>(plan.shape.out);
    size.weights += plan.weights + (config.residual && in != out ? in * out : 0);
    size.activations_per_vertex += plan.activations;
  }
  if (config.pool != Pool::none)
    size.weights += static_cast<double>(config.hidden) *
                    (static_cast<double>(config.hidden) + static_cast<double>(config.outputs));
  return size;
}

}  // namespace plait
