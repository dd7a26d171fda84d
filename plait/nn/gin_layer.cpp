#include "plait/nn/layer.h"

namespace plait {
namespace {

// Two linear layers with ReLU between them, as PyG's GIN has them.
class GinLayer : public Layer {
 public:
  GinLayer(const LayerShape& shape, WeightSource& source)
      : first_(source.linear({shape.out, shape.in}, shape.in)),
        first_bias_(source.linear({shape.out}, shape.in)),
        second_(source.linear({shape.out, shape.out}, shape.out)),
        second_bias_(source.linear({shape.out}, shape.out)),
        eps_(source.constant(1, 0).detach()) {}

  torch::Tensor forward(const LayerInput& x, const GraphRef& graph) const override {
    const auto with_neighbours = [&](const torch::Tensor& h) {
      return torch::addcmul(aggregate(h, graph, false, {}, {}), h, 1 + eps_);
    };
    const torch::Tensor h =
        transforms_first(x.is_sparse())  // the sum of rows times W is that of the products
            ? with_neighbours(x.times(first_)) + first_bias_
            : torch::linear(with_neighbours(x.dense()), first_, first_bias_);
    return torch::linear(h.relu(), second_, second_bias_);
  }
  NamedTensors parameters() const override {
    return {{"nn.lins.0.weight", first_},
            {"nn.lins.0.bias", first_bias_},
            {"nn.lins.1.weight", second_},
            {"nn.lins.1.bias", second_bias_}};
  }
  NamedTensors buffers() const override { return {{"eps", eps_}}; }
  std::uint64_t moved_width(bool sparse) const override {
    return static_cast<std::uint64_t>(first_.size(transforms_first(sparse) ? 0 : 1));
  }

 private:
  bool transforms_first(bool sparse) const { return sparse || first_.size(0) <= first_.size(1); }

  torch::Tensor first_, first_bias_, second_, second_bias_, eps_;
};

}  // namespace

std::unique_ptr<Layer> make_gin_layer(const ModelConfig&, const LayerShape& shape,
                                      WeightSource& source) {
  return std::make_unique<GinLayer>(shape, source);
}

}  // namespace plait
