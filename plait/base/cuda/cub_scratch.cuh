// The scratch memory that CUB's algorithms ask for.
#pragma once

#include <string_view>

#include "plait/base/cuda/cuda.cuh"

namespace plait {

// Calls act(scratch, bytes) twice, as CUB wants it: first to learn how much it takes, then to work.
// Throws as check_cuda(), with `what`.
template <class Act>
void with_scratch(std::string_view what, Act act) {
  std::size_t bytes = 0;
  check_cuda(act(nullptr, bytes), what);
  DeviceArray<std::byte> scratch(bytes);
  check_cuda(act(scratch.data(), bytes), what);
}

}  // namespace plait
