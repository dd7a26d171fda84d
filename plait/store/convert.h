// Elements of stored rows to and from single precision, with the same bits on the CPU and the GPU.
// Numbers are rounded to the nearest that a form has, ties to even. Decoding is exact, but for one
// product with the scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plait/base/host_device.h"
#include "plait/store/stored_rows.h"

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
using E4M3 = SmallFloat<3, 7>;

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

// Returns the number of an e4m3 code. It has no infinity; 0x7f and 0xff are NaN.
PLAIT_HOST_DEVICE constexpr float fp8_to_float(std::uint8_t code) {
  const std::uint32_t sign = std::uint32_t{code & 0x80u} << 24, low = code & 0x7fu;
  const std::uint32_t value =
      low == 0x7fu ? 0x7fc00000u : __builtin_bit_cast(std::uint32_t, E4M3::decode(low));
  return __builtin_bit_cast(float, sign | value);
}
// Numbers beyond 448, the greatest, become it. A NaN stays one.
PLAIT_HOST_DEVICE constexpr std::uint8_t float_to_fp8(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t size = bits & ~kSignBit, sign = bits >> 24 & 0x80u;
  constexpr std::uint32_t kGreatest = 0x43e00000u;  // 448
  const std::uint32_t code = size > kInfinity    ? 0x7fu
                             : size >= kGreatest ? 0x7eu
                                                 : E4M3::encode(size);
  return static_cast<std::uint8_t>(sign | code);
}

// Returns the nearest whole number from -127 to 127.
PLAIT_HOST_DEVICE constexpr std::int8_t float_to_int8(float value) {
  const float within = value > 127.0f ? 127.0f : value < -127.0f ? -127.0f : value;
  constexpr float kSteps = 12582912.0f;  // 1.5 x 2^23: fp32 has only whole numbers there
  return static_cast<std::int8_t>(__builtin_bit_cast(std::int32_t, within + kSteps) -
                                  __builtin_bit_cast(std::int32_t, kSteps));
}

// Returns the scale of a row whose greatest magnitude has these bits of fp32. A row with a number
// that is not finite has no scale but NaN, so that all of it is read as NaN.
PLAIT_HOST_DEVICE constexpr float scale_of(RowForm form, std::uint32_t greatest) {
  if (greatest >= kInfinity) return __builtin_bit_cast(float, 0x7fc00000u);
  return __builtin_bit_cast(float, greatest) / (form == RowForm::int8 ? 127.0f : 448.0f);
}
// Returns the code of a number in a row of int8 or fp8. The scale is 0 for rows of zeros and of
// numbers below 2^-141, which no scale can tell from zeros.
PLAIT_HOST_DEVICE constexpr std::uint8_t scaled_code(RowForm form, float value, float scale) {
  if (!(scale > 0)) return 0;
  return form == RowForm::int8 ? static_cast<std::uint8_t>(float_to_int8(value / scale))
                               : float_to_fp8(value / scale);
}
PLAIT_HOST_DEVICE constexpr float scaled_value(RowForm form, std::uint8_t code, float scale) {
  return scale * (form == RowForm::int8 ? static_cast<float>(static_cast<std::int8_t>(code))
                                        : fp8_to_float(code));
}

// Returns element k of a row that may have any alignment and is not raw. `scale`: scale_at(row).
inline float stored_float(const std::byte* row, RowForm form, std::uint64_t k, float scale) {
  const std::byte* const at = row + k * element_bytes(form);
  if (is_scaled(form)) return scaled_value(form, std::to_integer<std::uint8_t>(*at), scale);
  if (form == RowForm::f32) {
    float value = 0;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return form == RowForm::bf16 ? __builtin_bit_cast(float, std::uint32_t{bits} << 16)
                               : half_to_float(bits);
}

// Returns the scale of a row, 1 if it has none.
inline float scale_at(const std::byte* row, RowForm form, std::uint64_t width) {
  float scale = 1;
  if (is_scaled(form)) std::memcpy(&scale, row + scale_offset(width), sizeof(scale));
  return scale;
}

}  // namespace plait
