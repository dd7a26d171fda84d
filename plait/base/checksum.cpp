#include "plait/base/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace plait {

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string checksum_text(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

}  // namespace plait
