// Numbers of fewer bits than single precision, to and from it, with the same bits on the CPU and
// the GPU. They are rounded to the nearest, ties to even; widening is exact.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"

namespace plait {

// Numbers of few bits below the sign: `kMantissa` of mantissa, and an exponent with the bias
// `kBias`. The codes below 2^kMantissa are multiples of the least number.
template <int kMantissa, int kBias>
struct SmallFloat {
  static constexpr int kShift = 23 - kMantissa;
  static constexpr std::uint32_t kRebias = 127 - kBias;
  static constexpr std::uint32_t kNormal = (kRebias + 1) << 23;  // fp32's bits of the least normal
  // fp32 has numbers of this size in steps of the least number.
  static constexpr std::uint32_t kSteps = (kRebias + 24 - kMantissa) << 23;

  // Returns the code of the number nearest to the magnitude with these bits of fp32, which is
  // finite, as if the exponent had no upper end.
  PLAIT_HOST_DEVICE static constexpr std::uint32_t encode(std::uint32_t bits) {
    if (bits < kNormal)
      return __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, bits) +
                                                   __builtin_bit_cast(float, kSteps)) -
             kSteps;
    return ((bits + (1u << (kShift - 1)) - 1 + (bits >> kShift & 1u)) >> kShift) -
           (kRebias << kMantissa);
  }
  PLAIT_HOST_DEVICE static constexpr float decode(std::uint32_t code) {
    constexpr std::uint32_t kLeast = (kRebias + 1 - kMantissa) << 23;
    return code < 1u << kMantissa ? static_cast<float>(code) * __builtin_bit_cast(float, kLeast)
                                  : __builtin_bit_cast(float, (code << kShift) + (kRebias << 23));
  }
};
using Half = SmallFloat<10, 15>;

inline constexpr std::uint32_t kSignBit = 0x80000000u, kInfinity = 0x7f800000u;

// Returns the number that a half precision number stands for. A NaN stays one.
PLAIT_HOST_DEVICE constexpr float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16, low = bits & 0x7fffu;
  const std::uint32_t value = low >= 0x7c00u ? kInfinity | (low & 0x3ffu) << 13
                                             : __builtin_bit_cast(std::uint32_t, Half::decode(low));
  return __builtin_bit_cast(float, sign | value);
}
PLAIT_HOST_DEVICE constexpr std::uint16_t float_to_half(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t size = bits & ~kSignBit, sign = bits >> 16 & 0x8000u;
  constexpr std::uint32_t kTooLarge = 0x477ff000u;  // 65,520: halfway beyond the greatest half
  const std::uint32_t code = size > kInfinity    ? 0x7e00u
                             : size >= kTooLarge ? 0x7c00u
                                                 : Half::encode(size);
  return static_cast<std::uint16_t>(sign | code);
}

// Returns the nearest bfloat16's bits; a NaN stays one.
PLAIT_HOST_DEVICE constexpr std::uint16_t float_to_bf16_bits(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t code = (bits & ~kSignBit) > kInfinity
                                 ? bits >> 16 | 0x40u
                                 : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return static_cast<std::uint16_t>(code);
}

}  // namespace plait
