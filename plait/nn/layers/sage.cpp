#include <optional>

#include "plait/aggregate/operations.h"
#include "plait/nn/layers/layer.h"
#include "plait/nn/operations/edges.h"

namespace plait {
namespace {

class SageLayer : public Layer {
 public:
  // Without an extremum the layer takes the mean.
  SageLayer(std::optional<Extremum> extremum, const LayerShape& shape, WeightSource& source)
      : extremum_(extremum),
        neighbours_(source.linear({shape.out, shape.in}, shape.in)),
        own_(source.linear({shape.out, shape.in}, shape.in)),
        bias_(source.linear({shape.out}, shape.in)) {}

  torch::Tensor forward(const LayerInput& x, const GraphRef& graph) const override {
    if (extremum_) {
      const torch::Tensor h = x.dense();
      return linear(extremum_of_neighbours(h, graph, *extremum_), neighbours_, bias_, graph) +
             linear(own_rows(h, graph), own_, {}, graph);
    }
    if (transforms_first(own_, x, graph)) {  // the mean of rows, times W, is the mean of products
      const torch::Tensor padded = padded_weight(neighbours_);
      const auto products = x.times(torch::cat({padded, own_}), graph)
                                .split_with_sizes({padded.size(0), own_.size(0)}, 1);
      const torch::Tensor means = first_columns(mean(products[0], graph), neighbours_);
      return add_bias(means + own_rows(products[1], graph), bias_, graph);
    }
    const torch::Tensor h = x.dense();
    return linear(mean(h, graph), neighbours_, bias_, graph) +
           linear(own_rows(h, graph), own_, {}, graph);
  }
  NamedTensors parameters() const override {
    return {{"lin_l.weight", neighbours_}, {"lin_l.bias", bias_}, {"lin_r.weight", own_}};
  }

 private:
  static torch::Tensor mean(const torch::Tensor& x, const GraphRef& graph) {
    return aggregate(x, graph, false, {}, graph->inverse_degree());
  }

  std::optional<Extremum> extremum_;
  torch::Tensor neighbours_, own_, bias_;
};

std::optional<Extremum> extremum_of(const ModelConfig& config) {
  if (config.aggregation == "mean") return std::nullopt;
  return config.aggregation == "max" ? Extremum::greatest : Extremum::least;
}

std::unique_ptr<Layer> make_sage_layer(const ModelConfig& config, const LayerShape& shape,
                                       WeightSource& source) {
  return std::make_unique<SageLayer>(extremum_of(config), shape, source);
}

bool takes_extremum(const ModelConfig& config) { return extremum_of(config).has_value(); }

LayerPlan plan_of_sage(const ModelConfig& config, const LayerShape& shape, bool sparse_input) {
  LayerPlan plan = plan_of_sum(shape, sparse_input, true);  // the gradients of means
  plan.weights *= 2;
  if (!takes_extremum(config)) return plan;
  const auto width = static_cast<std::uint64_t>(shape.in);
  const ExtremumBackward backward{.edges = {}, .width = width};
  plan.order = PhaseOrder::sum_first;  // extrema are taken of the rows themselves
  plan.moved_width = backward.row_width();
  plan.copied_width = copied_width(width, false);      // forward; backward they have no gaps
  plan.activations += 5 * static_cast<double>(width);  // extrema, ties, and both turned round
  plan.operations = {ExtremumForward{.edges = {}, .width = width}, backward};
  plan.rows_per_sum = kExtremumRecord;
  return plan;
}

}  // namespace

const LayerKind kSageLayer{
    .name = "sage",
    .defaults = {2, 64, 1, 0.5f, "relu", NormKind::none, 0.01, 5e-4, false, Pool::mean},
    .make = make_sage_layer,
    .plan = plan_of_sage,
    .moves_rows = takes_extremum,
    .has_aggregation = true};

}  // namespace plait
