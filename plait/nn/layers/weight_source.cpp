#include <cmath>

#include "plait/nn/layers/layer.h"
#include "plait/nn/random.h"

namespace plait {

torch::Tensor WeightSource::uniform(const std::vector<std::int64_t>& shape, double bound) {
  if (device_.is_meta()) return torch::empty(shape, torch::device(device_)).requires_grad_();
  torch::Tensor weight = torch::empty(shape);
  fill_uniform(seed_, next_, bound,
               {weight.mutable_data_ptr<float>(), static_cast<std::size_t>(weight.numel())});
  next_ += 256;
  return weight.to(device_).requires_grad_();
}

torch::Tensor WeightSource::glorot(const std::vector<std::int64_t>& shape) {
  return uniform(shape, glorot_bound(shape[shape.size() - 1], shape[shape.size() - 2]));
}

torch::Tensor WeightSource::linear(const std::vector<std::int64_t>& shape, std::int64_t in) {
  return uniform(shape, 1 / std::sqrt(static_cast<double>(in)));
}

torch::Tensor WeightSource::constant(std::int64_t size, double value) const {
  return torch::full({size}, value, torch::device(device_)).requires_grad_();
}

}  // namespace plait
