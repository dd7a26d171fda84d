// Dropout behind ReLU in one operation against the two one after the other, with the gradient.
#include "plait/nn/layers/dropout.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

namespace plait {
namespace {

TEST(DropRelu, HasTheBitsOfBothOneAfterTheOther) {
  torch::manual_seed(3);
  const Dropout dropout(5, 0.4f);
  for (const std::int64_t width : {1, 3, 4, 17, 64}) {
    const VertexList vertices = torch::arange(7, 7 + 90);
    const torch::Tensor x = torch::randn({90, width}).requires_grad_();
    const torch::Tensor factor = torch::randn({90, width});
    for (const DropoutStep& step : {DropoutStep{&dropout, 9, 1}, DropoutStep{}}) {
      const torch::Tensor one = drop_relu(x, vertices, step);
      const torch::Tensor two = drop(x.relu(), vertices, step);
      EXPECT_TRUE(one.equal(two)) << width;
      EXPECT_EQ((one > 0).sum().item<std::int64_t>() < (x > 0).sum().item<std::int64_t>(),
                step.active())
          << width;
      const auto gradient = [&](const torch::Tensor& y) {
        return torch::autograd::grad({(y * factor).sum()}, {x})[0];
      };
      EXPECT_TRUE(gradient(one).equal(gradient(two))) << width;
    }
  }
}

}  // namespace
}  // namespace plait
