// bfloat16 storage: the upper half of an IEEE single.
#pragma once

#include <bit>
#include <cstdint>

namespace plait {

// A number as it is stored.
struct BFloat16 {
  std::uint16_t bits = 0;
};

// Returns the same number in single precision.
inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

// Returns the nearest number, ties to even; a NaN stays a NaN.
inline BFloat16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

}  // namespace plait
