#include "plait/nn/edge_operations.h"
#include "plait/nn/layer.h"

namespace plait {
namespace {

class SageLayer : public Layer {
 public:
  SageLayer(bool max, const LayerShape& shape, WeightSource& source)
      : max_(max),
        neighbours_(source.linear({shape.out, shape.in}, shape.in)),
        own_(source.linear({shape.out, shape.in}, shape.in)),
        bias_(source.linear({shape.out}, shape.in)) {}

  torch::Tensor forward(const LayerInput& x, const GraphRef& graph) const override {
    if (max_) {
      const torch::Tensor h = x.dense();
      return linear(max_of_neighbours(h, graph), neighbours_, bias_, graph) +
             linear(h, own_, {}, graph);
    }
    if (transforms_first(own_,
                         x.is_sparse())) {  // the mean of rows times W is that of the products
      const torch::Tensor padded = padded_weight(neighbours_);
      const auto products = x.times(torch::cat({padded, own_}), graph)
                                .split_with_sizes({padded.size(0), own_.size(0)}, 1);
      const torch::Tensor means = first_columns(mean(products[0], graph), neighbours_);
      return add_bias(means + products[1], bias_, graph);
    }
    const torch::Tensor h = x.dense();
    return linear(mean(h, graph), neighbours_, bias_, graph) + linear(h, own_, {}, graph);
  }
  NamedTensors parameters() const override {
    return {{"lin_l.weight", neighbours_}, {"lin_l.bias", bias_}, {"lin_r.weight", own_}};
  }

 private:
  static torch::Tensor mean(const torch::Tensor& x, const GraphRef& graph) {
    return aggregate(x, graph, false, {}, graph->inverse_degree());
  }

  bool max_;
  torch::Tensor neighbours_, own_, bias_;
};

}  // namespace

std::uint64_t sage_moved_width(const ModelConfig& config, const LayerShape& shape, bool sparse) {
  if (config.aggregation == "max")
    return MaxBackward{.width = static_cast<std::uint64_t>(shape.in)}.row_width();
  return narrower_width(shape, sparse);
}

std::unique_ptr<Layer> make_sage_layer(const ModelConfig& config, const LayerShape& shape,
                                       WeightSource& source) {
  return std::make_unique<SageLayer>(config.aggregation == "max", shape, source);
}

}  // namespace plait
