// How rows stand in slots.
#pragma once

#include <cstdint>

namespace plait {

// Floats from one row to the next, for rows of `width` floats.
constexpr std::uint64_t row_stride(std::uint64_t width) { return width; }

}  // namespace plait
