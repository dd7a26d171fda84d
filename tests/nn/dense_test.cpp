// Products whose factors are rounded to bf16, and their gradients, against libtorch's in double
// precision of factors that are rounded in the same way.
#include "plait/nn/operations/dense.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

namespace plait {
namespace {

using torch::Tensor;

Tensor random_matrix(std::int64_t rows, std::int64_t columns) {
  return torch::randn({rows, columns});
}

Tensor rounded(const Tensor& t) { return t.to(torch::kBFloat16).to(torch::kFloat64); }

class Bf16Products : public testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(1);
    set_precision(Precision::bf16);
  }
  void TearDown() override { set_precision(Precision::fp32); }
};

void expect_near(const Tensor& found, const Tensor& wanted) {
  ASSERT_EQ(found.sizes(), wanted.sizes());
  ASSERT_EQ(found.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(torch::allclose(found.to(torch::kFloat64), wanted, 1e-5, 2e-4))
      << (found - wanted).abs().max();
}

TEST_F(Bf16Products, RoundFactorsAndSumInFloat32) {
  constexpr std::int64_t kShapes[][3]{{1, 1, 1}, {0, 5, 3}, {17, 1030, 33}, {300, 64, 7}};
  for (const auto& [rows, in, out] : kShapes) {
    const Tensor x = random_matrix(rows, in).requires_grad_(),
                 weight = random_matrix(out, in).requires_grad_(),
                 bias = random_matrix(1, out)[0].requires_grad_(), dy = random_matrix(rows, out);
    const Tensor y = linear(x, weight, bias, {});
    expect_near(y.detach(), (rounded(x).mm(rounded(weight).t()) + bias).detach());
    const auto found = torch::autograd::grad({y}, {x, weight, bias}, {dy});
    expect_near(found[0], rounded(dy).mm(rounded(weight)).detach());
    expect_near(found[1], rounded(dy).t().mm(rounded(x)).detach());
    expect_near(found[2], dy.sum(0, false, torch::kFloat64));
  }
}

TEST_F(Bf16Products, DifferFromThoseOfFloat32) {
  const Tensor x = random_matrix(20, 30), weight = random_matrix(10, 30);
  const Tensor y = linear(x, weight, {}, {});
  set_precision(Precision::fp32);
  const Tensor plain = linear(x, weight, {}, {});
  EXPECT_TRUE(torch::equal(plain, x.mm(weight.t())));
  EXPECT_FALSE(torch::equal(y, plain));
  EXPECT_LT((y - plain).abs().max().item<float>(), 0.2f);
}

TEST_F(Bf16Products, NeedNoGradientOfFeatures) {
  const Tensor x = random_matrix(20, 30), weight = random_matrix(10, 30).requires_grad_();
  const Tensor y = linear(x, weight, {}, {});
  const auto found = torch::autograd::grad({y.sum()}, {weight});
  expect_near(found[0], rounded(x).sum(0).expand({10, 30}));
}

}  // namespace
}  // namespace plait
