// Compares with the functions of the machine's own library, which are right to about one bit.
#include "plait/base/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace plait {
namespace {

TEST(PortableMath, Log2) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> mantissa(1, 2), exponent(-1000, 1000), near(-1e-6, 1e-6);
  for (int i = 0; i < 200000; ++i) {
    const double x = std::ldexp(mantissa(random), static_cast<int>(exponent(random)));
    ASSERT_NEAR(portable::log2(x), std::log2(x), 1e-12 * std::abs(std::log2(x))) << x;
    const double y = mantissa(random) - 0.5;
    ASSERT_NEAR(portable::log2(y), std::log2(y), 1e-12 * std::abs(std::log2(y))) << y;
    const double z = 1 + near(random);
    ASSERT_NEAR(portable::log2(z), std::log2(z), 1e-12 * std::abs(std::log2(z))) << z;
  }
  for (int e = -1022; e < 1024; ++e) EXPECT_EQ(portable::log2(std::ldexp(1.0, e)), e);
}

TEST(PortableMath, Exp2) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> all(-1022, 1024), small(-2, 2), tiny(-1e-8, 1e-8);
  for (int i = 0; i < 200000; ++i)
    for (const double x : {all(random), small(random), tiny(random)})
      ASSERT_NEAR(portable::exp2(x) / std::exp2(x), 1, 1e-12) << x;
  for (int e = -1022; e < 1024; ++e) EXPECT_EQ(portable::exp2(e), std::ldexp(1.0, e));
  EXPECT_EQ(portable::exp2(1024), std::numeric_limits<double>::infinity());
  EXPECT_EQ(portable::exp2(-1023), 0);
}

TEST(PortableMath, Pow) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> base(1e-6, 10), exponent(-4, 4);
  for (int i = 0; i < 200000; ++i) {
    const double x = base(random), y = exponent(random);
    ASSERT_NEAR(portable::pow(x, y) / std::pow(x, y), 1, 1e-12) << x << ' ' << y;
  }
}

// Values are fixed for all machines: the compiler evaluates them, and the machine that runs the
// test.
TEST(PortableMath, TheSameBitsWhenCompiledAndWhenRun) {
  constexpr double compiled[] = {portable::log2(3.7), portable::exp2(-7.3),
                                 portable::pow(0.3, 1.7)};
  volatile double a = 3.7, b = -7.3, c = 0.3, d = 1.7;
  EXPECT_EQ(compiled[0], portable::log2(a));
  EXPECT_EQ(compiled[1], portable::exp2(b));
  EXPECT_EQ(compiled[2], portable::pow(c, d));
}

}  // namespace
}  // namespace plait
