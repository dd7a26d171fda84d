// Elements of stored rows as single precision, on the CPU.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plait/base/bf16.h"
#include "plait/store/gather_rows.h"

namespace plait {

// Returns the number that a half precision number stands for: exact, as on the GPU. A NaN stays
// one.
constexpr float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16, low = bits & 0x7fffu;
  if (low >= 0x7c00u)  // infinite, or no number
    return std::bit_cast<float>(sign | 0x7f800000u | (low & 0x3ffu) << 13);
  if (low < 0x400u) {  // multiples of 2^-24
    const float value = static_cast<float>(low) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | (low + (112u << 10)) << 13);
}

// Returns the element at `at`, which may have any alignment.
inline float stored_float(const std::byte* at, RowForm form) {
  if (form == RowForm::f32) {
    float value = 0;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return form == RowForm::bf16 ? to_float(BFloat16{bits}) : half_to_float(bits);
}

}  // namespace plait
