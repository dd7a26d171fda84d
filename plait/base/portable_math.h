// Logarithm, exponential and power that give the same bits on every machine: only + - * /, which
// IEEE 754 rounds exactly, in a fixed order. The libraries' own functions differ in the last bit
// from one to the next, and a generated graph must not. Relative error below 1e-13 for log2 and
// exp2. Needs a compiler that does not fuse multiplications and additions (-ffp-contract=off).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "plait/base/host_device.h"

namespace plait::portable {

inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// Returns the binary logarithm of a normal number above 0.
PLAIT_HOST_DEVICE constexpr double log2(double x) {
  // x = 2^exponent * m with m in [sqrt(1/2), sqrt(2)).
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = __builtin_bit_cast(double, (bits & 0xfffffffffffffu) | std::uint64_t{1023} << 52);
  if (m > 0x1.6a09e667f3bcdp0) {
    m *= 0.5;
    ++exponent;
  }
  // ln m = 2 artanh(s) = 2 (s + s^3 / 3 + s^5 / 5 + ...), |s| < 0.172
  const double s = (m - 1) / (m + 1);
  double series = 0;
  for (int k = 25; k >= 1; k -= 2) series = series * (s * s) + 1.0 / k;
  return static_cast<double>(exponent) + 2 * s * series / kLn2;
}

// Returns 2^x. Overflows to infinity at 1024; below -1022 the result is 0, not a subnormal number.
constexpr double exp2(double x) {
  if (x >= 1024) return std::numeric_limits<double>::infinity();
  if (x < -1022) return 0;
  const auto whole = static_cast<std::int64_t>(x < 0 ? x - 0.5 : x + 0.5);
  // exp(t) = 1 + t (1 + t / 2 (1 + t / 3 (...))), |t| < 0.347
  const double t = (x - static_cast<double>(whole)) * kLn2;
  double series = 1;
  for (int k = 14; k >= 1; --k) series = 1 + t / k * series;
  // 2^whole is made of two factors, because 2^1024 and 2^-1023 are not normal numbers.
  const auto power = [](std::int64_t e) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
  };
  return series * power(whole / 2) * power(whole - whole / 2);
}

// Returns x^y for x > 0.
constexpr double pow(double x, double y) { return exp2(y * log2(x)); }

}  // namespace plait::portable
