// The distance between rows in slots, on the wire between GPUs, and wherever else the library lays
// them out itself. All ranks must use the same stride, so it follows from width and type alone.
#pragma once

#include <cstdint>

#include "plait/base/dtype.h"

namespace plait {

// Returns the elements from one row of `width` to the next. Each row begins at a multiple of 16
// bytes, which a lane of a GPU reads at once, and is padded to such a multiple. Rows of at most 8
// bytes have no gaps, so that padding never doubles the bytes that must move. The stride does not
// fall as the width grows.
constexpr std::uint64_t row_stride(std::uint64_t width, DType type = DType::f32) {
  constexpr std::uint64_t kVector = 16;  // bytes
  const std::uint64_t of_vector = kVector / size_of(type), missing = (0 - width) % of_vector;
  return width <= of_vector / 2 ? width : width + missing;
}

// Returns the same in bytes.
constexpr std::uint64_t row_bytes(std::uint64_t width, DType type = DType::f32) {
  return row_stride(width, type) * size_of(type);
}

}  // namespace plait
