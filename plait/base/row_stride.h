// How far apart rows stand in slots, on the wire between GPUs, and wherever else the library lays
// them out itself. All ranks must use the same stride, so it follows from width and type alone.
#pragma once

#include <cstdint>

#include "plait/base/dtype.h"

namespace plait {

// Elements from a row of `width` to the next: each row begins at a multiple of 16 bytes, which is
// what a lane of a GPU reads at once, and is padded up to one. Rows of at most 8 bytes have no
// gaps, so that padding never doubles what must move. Does not fall as the width grows.
constexpr std::uint64_t row_stride(std::uint64_t width, DType type = DType::f32) {
  constexpr std::uint64_t kVector = 16;  // bytes
  const std::uint64_t of_vector = kVector / size_of(type), missing = (0 - width) % of_vector;
  return width <= of_vector / 2 ? width : width + missing;
}

constexpr std::uint64_t row_bytes(std::uint64_t width, DType type = DType::f32) {
  return row_stride(width, type) * size_of(type);
}

}  // namespace plait
