#include "plait/nn/training/adam.h"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>

namespace plait {
namespace {

TEST(Adam, HasTheBitsOfLibtorchsOnTheCpu) {
  torch::manual_seed(1);
  std::vector<torch::Tensor> ours, theirs;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{5, 9}, {5}, {3, 5}, {1}}) {
    ours.push_back(torch::randn(shape).requires_grad_());
    theirs.push_back(ours.back().detach().clone().requires_grad_());
  }
  const auto group = [&](std::size_t begin, double decay) {
    auto options = std::make_unique<torch::optim::AdamOptions>(0.02);
    options->weight_decay(decay);
    return torch::optim::OptimizerParamGroup({theirs[begin], theirs[begin + 1]},
                                             std::move(options));
  };
  Adam adam(ours, {.learning_rate = 0.02, .weight_decay = 0.1, .decayed = 2});
  torch::optim::Adam reference(std::vector{group(0, 0.1), group(2, 0)});
  for (int step = 0; step < 10; ++step) {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ours[i].mutable_grad() = torch::randn_like(ours[i]);
      theirs[i].mutable_grad() = ours[i].grad().clone();
    }
    adam.step();
    reference.step();
    for (std::size_t i = 0; i < ours.size(); ++i)
      ASSERT_TRUE(torch::equal(ours[i], theirs[i])) << "parameter " << i << ", step " << step;
  }
}

}  // namespace
}  // namespace plait
