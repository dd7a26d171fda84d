// The forms in which a number is stored. Sums are always taken in single precision.
#pragma once

#include <cstddef>
#include <string_view>

namespace plait {

// A form; its names in options and messages are fp32, bf16 and fp16.
enum class DType { f32, bf16, f16 };

// Returns bytes per number.
constexpr std::size_t size_of(DType type) { return type == DType::f32 ? 4 : 2; }

// Returns the form's name.
constexpr std::string_view to_string(DType type) {
  constexpr std::string_view names[] = {"fp32", "bf16", "fp16"};
  return names[static_cast<std::size_t>(type)];
}

}  // namespace plait
