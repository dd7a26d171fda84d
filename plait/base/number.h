// The types of the numbers in rows: float, BFloat16 and Float16. All arithmetic is in single
// precision: numbers are widened exactly, and results are rounded to the nearest, ties to even, by
// the CPU and the GPU alike.
#pragma once

#include <type_traits>

#include "plait/base/bf16.h"
#include "plait/base/dtype.h"
#include "plait/base/small_float.h"

namespace plait {

// An IEEE half precision number as it is stored.
struct Float16 {
  std::uint16_t bits = 0;
};

// Returns the same number in single precision.
PLAIT_HOST_DEVICE constexpr float widened(float value) { return value; }
PLAIT_HOST_DEVICE constexpr float widened(BFloat16 value) {
  return __builtin_bit_cast(float, std::uint32_t{value.bits} << 16);
}
PLAIT_HOST_DEVICE inline float widened(Float16 value) {
#ifdef __CUDA_ARCH__
  float single;
  asm("cvt.f32.f16 %0, %1;" : "=f"(single) : "h"(value.bits));
  return single;
#else
  return half_to_float(value.bits);
#endif
}

// Returns the nearest number of type T; NaN stays NaN.
template <class T>
PLAIT_HOST_DEVICE constexpr T rounded(float value) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return {float_to_bf16_bits(value)};
  else if constexpr (std::is_same_v<T, Float16>)
    return {float_to_half(value)};
  else
    return value;
}

// Calls use(T{}) with the type T of the numbers, and returns its result.
template <class Use>
decltype(auto) with_number(DType type, Use&& use) {
  if (type == DType::bf16) return use(BFloat16{});
  if (type == DType::f16) return use(Float16{});
  return use(float{});
}

}  // namespace plait
