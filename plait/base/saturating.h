// Numbers of bytes that stay at the largest number instead of wrapping round: a request may be
// absurd, and must be refused, not allowed.
#pragma once

#include <cstdint>

namespace plait {

// A number of bytes that + and * do not let overflow.
struct Bytes {
  std::uint64_t value = 0;
  constexpr Bytes() = default;
  constexpr Bytes(std::uint64_t v) : value(v) {}  // NOLINT: a number as it is
};
constexpr Bytes operator+(Bytes a, Bytes b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a.value, b.value, &sum) ? ~std::uint64_t{0} : sum;
}
constexpr Bytes operator*(Bytes a, Bytes b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a.value, b.value, &product) ? ~std::uint64_t{0} : product;
}

}  // namespace plait
