#include "plait/table/sharded/cuda/gpu_array.h"

#include <algorithm>

namespace plait {

std::size_t sharded_bytes(std::size_t bytes, int ranks) {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  const auto parts = static_cast<std::size_t>(ranks);
  const std::size_t part = bytes / parts + (bytes % parts != 0 ? 1 : 0);
  return (std::max<std::size_t>(part, 1) + kPage - 1) / kPage * kPage;
}

}  // namespace plait
