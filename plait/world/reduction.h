// Reductions over ranks: values of one type, which ranks add up or of which they take the least or
// the largest, element by element.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <variant>

namespace plait {

enum class Reduction : std::uint8_t { sum, min, max };

// The values of a rank, which become those of all. Least and largest values are taken of integers
// alone: a float may be no number.
using ReducedValues =
    std::variant<std::span<float>, std::span<double>, std::span<std::int32_t>,
                 std::span<std::int64_t>, std::span<std::uint32_t>, std::span<std::uint64_t>>;

// Combines the values of another rank into `mine`. Sums of integers wrap.
template <class T>
void combine(std::span<T> mine, const T* others, Reduction how) {
  const auto each = [&](auto combined) {
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = combined(mine[i], others[i]);
  };
  if constexpr (std::integral<T>) {
    // Signed numbers must not overflow.
    using Wraps = std::make_unsigned_t<T>;
    if (how == Reduction::sum)
      each([](T a, T b) { return static_cast<T>(static_cast<Wraps>(a) + static_cast<Wraps>(b)); });
    else if (how == Reduction::min)
      each([](T a, T b) { return std::min(a, b); });
    else
      each([](T a, T b) { return std::max(a, b); });
  } else {
    each([](T a, T b) { return a + b; });
  }
}

}  // namespace plait
