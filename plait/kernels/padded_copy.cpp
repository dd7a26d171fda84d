#include "plait/kernels/cuda/padded_copy.h"

#include <cstring>

namespace plait {

void copy_padded(const PaddedCopy& copy) {
  auto* const to = static_cast<std::byte*>(copy.to);
  if (copy.bytes > 0) std::memcpy(to, copy.from, copy.bytes);
  for (std::uint64_t at = copy.bytes; at < copy.room; at += sizeof(std::uint32_t)) {
    const std::uint32_t number = copy.filled(at);
    std::memcpy(to + at, &number, sizeof(number));
  }
}

}  // namespace plait
