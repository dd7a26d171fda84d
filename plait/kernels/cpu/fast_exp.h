// exp(x) in fp32 without a branch or a call, so that a compiler computes eight at once, and of the
// same bits on every machine: only + and *, in a fixed order. For x up to 87; below -87 the result
// is 0 (exp(-87) is the last power that is not subnormal). Relative error below 3e-7; exp(NaN) is
// NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace plait {

// Returns exp(x) for x up to 87.
inline float fast_exp(float x) {
  // x = n ln 2 + r, |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to a whole number and leaves it in
  // the low bits. ln 2 has two parts: the first has so few bits that n times it is exact.
  constexpr float kRound = 0x1.8p23f, kLog2E = 0x1.715476p0f;
  constexpr float kLn2High = 0x1.62ep-1f, kLn2Low = 0x1.0bfbe8p-15f;
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float series = 1.0f / 5040;
  series = series * r + 1.0f / 720;
  series = series * r + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  // 2^n: n goes into the exponent.
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) + 127u;
  const float result = series * std::bit_cast<float>(exponent << 23);
  return x < -87.0f ? 0.0f : result;
}

}  // namespace plait
