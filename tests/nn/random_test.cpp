#include "plait/nn/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace plait {
namespace {

TEST(InitialWeights, FillTheirRangeEvenly) {
  std::vector<float> values(30000);
  const double bound = glorot_bound(300, 100);
  EXPECT_DOUBLE_EQ(bound, std::sqrt(6.0 / 400));
  fill_uniform(3, 0, bound, values);
  double sum = 0, squares = 0;
  for (const float v : values) {
    ASSERT_LE(std::abs(v), bound);
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  EXPECT_NEAR(sum / 30000, 0, 4 * bound / std::sqrt(3 * 30000.0));
  EXPECT_NEAR(squares / 30000, bound * bound / 3, 0.03 * bound * bound);
  std::vector<float> few(7);  // a number depends on its place alone
  fill_uniform(3, 0, bound, few);
  EXPECT_TRUE(std::ranges::equal(few, std::span(values).first(7)));
}

}  // namespace
}  // namespace plait
