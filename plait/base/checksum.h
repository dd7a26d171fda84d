// XXH3 (64 bit) of bytes. It detects content that differs by accident, not by intent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plait {

// Returns the checksum.
std::uint64_t checksum_of(std::span<const std::byte> bytes);
// Returns sixteen hexadecimal digits.
std::string checksum_text(std::uint64_t checksum);

}  // namespace plait
