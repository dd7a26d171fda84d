// Elements of stored rows to and from single precision, with the same bits on the CPU and the GPU.
// Numbers are rounded to the nearest that a form has, ties to even. Decoding is exact, but for one
// product with the scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plait/base/small_float.h"
#include "plait/table/stored_rows.h"

namespace plait {

using E4M3 = SmallFloat<3, 7>;

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
