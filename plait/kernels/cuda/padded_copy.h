// Copies of arrays into larger ones, whose rest is filled: for work of a GPU that is recorded once
// and replayed on batches of different sizes (nn/batches/sample_room.h). This header needs no
// header of CUDA.
#pragma once

#include <cstdint>
#include <span>

#include "plait/base/host_device.h"

namespace plait {

// One array. Sizes are in bytes, multiples of 4; addresses are multiples of 4, and of 16 where
// copies are to be fast.
struct PaddedCopy {
  const void* from = nullptr;
  void* to = nullptr;
  std::uint64_t bytes = 0;  // that are copied
  std::uint64_t room = 0;   // of `to`, at least as many
  // These numbers fill the rest, repeated every 16 bytes counted from the beginning of `to`; `step`
  // is added to the last of them for each 16 bytes behind `bytes`.
  std::uint32_t pad[4] = {};
  std::uint32_t step = 0;

  // Returns the number that stands at a byte behind the copied ones.
  PLAIT_HOST_DEVICE std::uint32_t filled(std::uint64_t at) const {
    const std::uint64_t word = at / 4 % 4;
    return word < 3 ? pad[word] : pad[3] + step * static_cast<std::uint32_t>(at / 16 - bytes / 16);
  }
};

// Does the copy between arrays of the host.
void copy_padded(const PaddedCopy& copy);
// Enqueues all copies, of arrays of the GPU, on the cudaStream_t.
void gpu_copy_padded(std::span<const PaddedCopy> copies, void* stream);

}  // namespace plait
