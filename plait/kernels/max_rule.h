// Which edges reach the maximum: the rule that the CPU and the GPU share.
#pragma once

#include "plait/base/host_device.h"

namespace plait {

// Equal, or both NaN.
PLAIT_HOST_DEVICE constexpr bool reaches(float value, float greatest) {
  return (value == greatest) | ((value != value) & (greatest != greatest));
}

// The greatest of some numbers, and how many they were that reach it.
struct Greatest {
  float value, ties;

  PLAIT_HOST_DEVICE static constexpr Greatest of_nothing() { return {-__builtin_inff(), 0.0f}; }
  PLAIT_HOST_DEVICE constexpr void add(float other, float others_ties = 1) {
    const bool greater = (other > value) | ((other != other) & (value == value));
    const float more = reaches(other, value) ? others_ties : 0.0f;
    ties = greater ? others_ties : ties + more;
    value = greater ? other : value;
  }
};

}  // namespace plait
