// The types in which the elements of rows are stored. Sums are always taken in single precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plait {

// A type. Kernels compute with rows of the first three. Tables also store rows of int8 and of fp8
// (e4m3: 4 bits of exponent, 3 of mantissa, the greatest number 448), which hold whole multiples of
// a scale that stands behind them (table/stored_rows.h), and raw bytes, which are never converted.
enum class DType : std::uint8_t { f32, bf16, f16, int8, fp8, raw };

// The facts of a type that need no codes (table/convert.h has these).
struct DTypeTraits {
  std::string_view name;  // in options and messages
  std::size_t bytes;      // per element
  bool scaled = false;    // each row has a scale
};
// By type.
inline constexpr DTypeTraits kDTypes[] = {{"fp32", 4},       {"bf16", 2},      {"fp16", 2},
                                          {"int8", 1, true}, {"fp8", 1, true}, {"raw", 1}};

// Return the facts of a type: all, the bytes per element, whether rows have a scale, and the name.
constexpr const DTypeTraits& traits_of(DType type) {
  return kDTypes[static_cast<std::size_t>(type)];
}
constexpr std::size_t size_of(DType type) { return traits_of(type).bytes; }
constexpr bool is_scaled(DType type) { return traits_of(type).scaled; }
constexpr std::string_view to_string(DType type) { return traits_of(type).name; }

}  // namespace plait
