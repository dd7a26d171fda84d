// The scratch memory that CUB's algorithms ask for.
#pragma once

#include <string_view>

#include "plait/base/cuda/cuda.cuh"

namespace plait {

// Calls act(scratch, bytes) twice, as CUB wants it: first to learn how much it takes, then to work.
// The scratch memory is the pool's, if one is named. Throws as check_cuda(), with `what`.
template <class Act>
void with_scratch(std::string_view what, const std::optional<FromPool>& pool, Act act) {
  std::size_t bytes = 0;
  check_cuda(act(nullptr, bytes), what);
  DeviceArray<std::byte> scratch(bytes, pool);
  check_cuda(act(scratch.data(), bytes), what);
}
template <class Act>
void with_scratch(std::string_view what, Act act) {
  with_scratch(what, std::nullopt, act);
}

}  // namespace plait
