// How an owner merges a value that another rank sends into its own: the same rule on the CPU and on
// GPUs.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "plait/base/host_device.h"

namespace plait {

// The ways to merge. min, max, bit_or and first may see the same value twice without harm.
enum class Merge : std::uint8_t {
  min,     // the less of both, a number rather than a NaN; of +0 and -0 the owner's stays
  max,     // the greater, with the same rules
  add,     // the sum, which ranks enter in their order; integers wrap
  bit_or,  // of integers only
  first,   // its own value, or if there is none the lowest rank's; all bits set mean none
};

// Tells whether values of a type can be merged so.
template <class T>
constexpr bool can_merge(Merge how) {
  return how != Merge::bit_or || std::integral<T>;
}

// The bits of a value.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
PLAIT_HOST_DEVICE constexpr BitsOf<T> bits_of(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return __builtin_bit_cast(BitsOf<T>, value);
}

// Returns the owner's value after `theirs` has come.
template <Merge how, class T>
PLAIT_HOST_DEVICE constexpr T merged(T mine, T theirs) {
  if constexpr (how == Merge::min)
    return theirs < mine || mine != mine ? theirs : mine;
  else if constexpr (how == Merge::max)
    return theirs > mine || mine != mine ? theirs : mine;
  else if constexpr (how == Merge::first)
    return bits_of(mine) == static_cast<BitsOf<T>>(-1) ? theirs : mine;
  else if constexpr (std::floating_point<T>)
    return mine + theirs;
  else if constexpr (how == Merge::add)
    return static_cast<T>(bits_of(mine) + bits_of(theirs));
  else
    return static_cast<T>(bits_of(mine) | bits_of(theirs));
}

// Tells whether a merge has changed the owner's value. A sum with 0 changes none: neither -0, which
// becomes +0, nor a NaN, whose other bits may.
template <Merge how, class T>
PLAIT_HOST_DEVICE constexpr bool changes(T mine, T now) {
  if constexpr (std::floating_point<T> && how == Merge::add)
    return now != mine && (now == now || mine == mine);
  else
    return bits_of(now) != bits_of(mine);
}

// Calls body.template operator()<how>() for a `how` that can_merge<T>().
template <class T, class Body>
void with_merge(Merge how, const Body& body) {
  switch (how) {
    case Merge::min:
      return body.template operator()<Merge::min>();
    case Merge::max:
      return body.template operator()<Merge::max>();
    case Merge::add:
      return body.template operator()<Merge::add>();
    case Merge::first:
      return body.template operator()<Merge::first>();
    case Merge::bit_or:
      if constexpr (std::integral<T>) body.template operator()<Merge::bit_or>();
  }
}

}  // namespace plait
