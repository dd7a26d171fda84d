// The rule, shared by the CPU and the GPU, that decides which edges reach the extremum.
#pragma once

#include "plait/base/host_device.h"
#include "plait/kernels/extremum.h"

namespace plait {

// Tells whether both are equal, or both NaN.
PLAIT_HOST_DEVICE constexpr bool reaches(float value, float extremum) {
  return (value == extremum) | ((value != value) & (extremum != extremum));
}

// The extremum of some numbers, and how many of them reach it.
template <Extremum kWhich>
struct Extreme {
  float value, ties;

  // Returns the extremum of no numbers: an infinity that any number replaces, without ties.
  PLAIT_HOST_DEVICE static constexpr Extreme of_nothing() {
    return {kWhich == Extremum::greatest ? -__builtin_inff() : __builtin_inff(), 0.0f};
  }
  // Adds a number that `others_ties` edges reach.
  PLAIT_HOST_DEVICE constexpr void add(float other, float others_ties = 1) {
    const bool beyond = kWhich == Extremum::greatest ? other > value : other < value;
    const bool wins = beyond | ((other != other) & (value == value));
    const float more = reaches(other, value) ? others_ties : 0.0f;
    ties = wins ? others_ties : ties + more;
    value = wins ? other : value;
  }
};

}  // namespace plait
