#include "plait/base/copy_bytes.h"

#include <cstring>

#include "plait/base/parallel.h"

namespace plait {

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  parallel_blocks(bytes, kPiece, [&](std::size_t begin, std::size_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                end - begin);
  });
}

}  // namespace plait
