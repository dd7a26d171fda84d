// Binary search on the CPU and the GPU.
#pragma once

#include <cstdint>

#include "plait/base/host_device.h"

namespace plait {

// Returns the first index of begin .. end - 1 whose value, ascending there, is `wanted` or above;
// `end` if there is none.
template <class Number>
PLAIT_HOST_DEVICE constexpr std::uint64_t lower_bound(const Number* values, std::uint64_t begin,
                                                      std::uint64_t end, std::uint64_t wanted) {
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    if (values[middle] < wanted)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

}  // namespace plait
