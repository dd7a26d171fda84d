// Elements of stored rows to and from single precision, with the same bits on the CPU and the GPU.
// Numbers are rounded to the nearest that a type has, ties to even. Decoding is exact, but for one
// product with the scale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plait/base/number.h"
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

// A storage type of tables: `Code` is the stored form of an element, and encode() and decode() are
// the ways to it and back. If kGreatest is not 0, each row has a scale, which makes this number of
// the row's greatest magnitude.
template <class T>
struct StoredNumber {
  using Code = T;  // a type of base/number.h
  static constexpr float kGreatest = 0;
  static PLAIT_HOST_DEVICE constexpr Code encode(float value) { return rounded<T>(value); }
  static PLAIT_HOST_DEVICE constexpr float decode(Code code) { return widened(code); }
};
struct StoredInt8 {
  using Code = std::int8_t;
  static constexpr float kGreatest = 127;
  static PLAIT_HOST_DEVICE constexpr Code encode(float value) { return float_to_int8(value); }
  static PLAIT_HOST_DEVICE constexpr float decode(Code code) { return static_cast<float>(code); }
};
struct StoredFp8 {
  using Code = std::uint8_t;
  static constexpr float kGreatest = 448;
  static PLAIT_HOST_DEVICE constexpr Code encode(float value) { return float_to_fp8(value); }
  static PLAIT_HOST_DEVICE constexpr float decode(Code code) { return fp8_to_float(code); }
};
// Calls use(S{}) with the storage type S, and returns its result. Raw rows have none.
template <class Use>
decltype(auto) with_storage(DType type, Use&& use) {
  if (type == DType::int8) return use(StoredInt8{});
  if (type == DType::fp8) return use(StoredFp8{});
  return with_number(type, [&]<class T>(T) { return use(StoredNumber<T>{}); });
}

// Tells whether each row of a storage type has a scale.
template <class Storage>
inline constexpr bool kHasScale = Storage::kGreatest > 0;

// Returns the scale of a row whose greatest magnitude has these bits of fp32. A row with a number
// that is not finite has no scale but NaN, so that all of it is read as NaN.
template <class Storage>
PLAIT_HOST_DEVICE constexpr float scale_of(std::uint32_t greatest) {
  if (greatest >= kInfinity) return __builtin_bit_cast(float, 0x7fc00000u);
  return __builtin_bit_cast(float, greatest) / Storage::kGreatest;
}
// Returns the code of a number. The scale is 0 for rows of zeros and of numbers below 2^-141, which
// no scale can tell from zeros.
template <class Storage>
PLAIT_HOST_DEVICE constexpr typename Storage::Code encoded(float value, float scale) {
  if constexpr (!kHasScale<Storage>)
    return Storage::encode(value);
  else
    return scale > 0 ? Storage::encode(value / scale) : typename Storage::Code{};
}
template <class Storage>
PLAIT_HOST_DEVICE constexpr float decoded(typename Storage::Code code, float scale) {
  if constexpr (!kHasScale<Storage>)
    return Storage::decode(code);
  else
    return scale * Storage::decode(code);
}

// Returns element k of a row that may have any alignment and is not raw. `scale`: scale_at(row).
template <class Storage>
float stored_float(const std::byte* row, std::uint64_t k, float scale) {
  typename Storage::Code code;
  std::memcpy(&code, row + k * sizeof(code), sizeof(code));
  return decoded<Storage>(code, scale);
}
inline float stored_float(const std::byte* row, DType type, std::uint64_t k, float scale) {
  return with_storage(type, [&]<class S>(S) { return stored_float<S>(row, k, scale); });
}

// Returns the scale of a row, 1 if it has none.
inline float scale_at(const std::byte* row, DType type, std::uint64_t width) {
  float scale = 1;
  if (is_scaled(type)) std::memcpy(&scale, row + scale_offset(width), sizeof(scale));
  return scale;
}

}  // namespace plait
