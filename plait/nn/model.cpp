#include "plait/nn/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/profile.h"
#include "plait/nn/operations/share_rows.h"
#include "plait/plan/choose.h"

namespace plait {
namespace {

struct Kind {
  const char* name;
  LayerMaker make;
  MovedWidth moved_width;
  PassWidthsOf pass_widths;  // or null: the layer sums only
  bool one_loop_each;
  ModelDefaults defaults;
};
std::uint64_t narrower(const ModelConfig&, const LayerShape& shape, bool sparse_input) {
  return narrower_width(shape, sparse_input);
}
std::uint64_t nothing(const ModelConfig&, const LayerShape&, bool) { return 0; }

constexpr std::array kKinds{
    Kind{"gcn",
         make_gcn_layer,
         narrower,
         nullptr,
         true,
         {2, 16, 1, 0.5f, "relu", NormKind::none, 0.01, 5e-4, false, Pool::mean}},
    Kind{"mlp",
         make_mlp_layer,
         nothing,
         nullptr,
         false,
         {2, 16, 1, 0.5f, "relu", NormKind::none, 0.01, 5e-4, false, Pool::mean}},
    Kind{"sage",
         make_sage_layer,
         sage_moved_width,
         sage_pass_widths,
         false,
         {2, 64, 1, 0.5f, "relu", NormKind::none, 0.01, 5e-4, false, Pool::mean}},
    Kind{"gin",
         make_gin_layer,
         narrower,
         nullptr,
         false,
         {5, 64, 1, 0.5f, "relu", NormKind::batch, 0.01, 5e-4, false, Pool::sum}},
    Kind{"gat",
         make_gat_layer,
         gat_moved_width,
         gat_pass_widths,
         true,
         {2, 64, 8, 0.6f, "elu", NormKind::none, 0.005, 5e-4, true, Pool::mean}}};

const Kind& kind_of(const std::string& name) {
  for (const Kind& kind : kKinds)
    if (kind.name == name) return kind;
  throw UsageError(fmt::format("model '{}' is unknown; use {}", name, model_kinds()));
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
                      "{} hidden features cannot be shared by {} heads; use a multiple", c.hidden,
                      c.heads);
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
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const ModelDefaults& model_defaults(const std::string& kind) { return kind_of(kind).defaults; }

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
  const Kind& kind = kind_of(config.kind);
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
  return {.one_loop_each = kind_of(config.kind).one_loop_each,
          .slot_vertices = config.kind == "gat" && config.dropout > 0};
}

std::string_view to_string(PhaseOrder order) {
  constexpr std::array<std::string_view, 3> kNames{"no sum", "product first", "sum first"};
  return kNames[static_cast<std::size_t>(order)];
}

LayerPlan layer_plan_of(const ModelConfig& config, const LayerShape& shape, bool sparse_input) {
  LayerPlan plan{.shape = shape,
                 .moved_width = kind_of(config.kind).moved_width(config, shape, sparse_input),
                 .moves_rows = moves_rows(config)};
  if (plan.moved_width == 0) return plan;
  // Attention is paid to products, and extrema are taken of the rows themselves.
  const bool product_first =
      plan.moves_rows ? config.kind == "gat" : transforms_first(shape, sparse_input);
  plan.order = product_first ? PhaseOrder::product_first : PhaseOrder::sum_first;
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

std::vector<PassWidths> scheduled_of(const ModelConfig& config) {
  std::vector<PassWidths> all;
  for (int l = 0; l < config.layers && moves_rows(config); ++l)
    std::ranges::copy(kind_of(config.kind).pass_widths(shape_of(config, l)),
                      std::back_inserter(all));
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

namespace {

// Returns the columns of a layer's product: of all heads, if their mean is taken later.
std::int64_t widest_product(const ModelConfig& config, const LayerShape& shape) {
  return config.kind == "gat" && !shape.concatenated ? shape.out * shape.heads : shape.out;
}

}  // namespace

bool moves_rows(const ModelConfig& config) {
  return config.kind == "gat" || (config.kind == "sage" && config.aggregation != "mean");
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

std::uint64_t edge_scratch_of(const ModelConfig& config) {
  std::int64_t widest = 0;
  if (config.kind == "gat")
    for (int l = 0; l < config.layers; ++l)
      widest = std::max(widest, widest_product(config, shape_of(config, l)));
  return static_cast<std::uint64_t>(widest);
}

std::uint64_t layer_floats(const ModelConfig& config, int layer) {
  const LayerShape shape = shape_of(config, layer);
  return static_cast<std::uint64_t>(shape.in) +
         2 * static_cast<std::uint64_t>(widest_product(config, shape));
}

ModelSize size_of_model(const ModelConfig& config) {
  ModelSize size{0, 0};
  for (int l = 0; l < config.layers; ++l) {
    const LayerShape shape = shape_of(config, l);
    const auto in = static_cast<double>(shape.in), out = static_cast<double>(shape.out);
    const auto wide = static_cast<double>(widest_product(config, shape));
    size.weights += in * wide * (config.kind == "sage" ? 2 : 1) * (config.residual ? 2 : 1) +
                    (config.kind == "gin" ? out * out : 0);
    // The product, the sum and the dropped input are kept for the gradient; attention keeps more.
    size.activations_per_vertex += wide * (config.kind == "gat" || config.kind == "gin" ? 8 : 4);
  }
  if (config.pool != Pool::none)
    size.weights += static_cast<double>(config.hidden) *
                    (static_cast<double>(config.hidden) + static_cast<double>(config.outputs));
  return size;
}

}  // namespace plait
