// XXH3 (64 bit) of bytes: tells content that differs by accident, not by intent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plait {

std::uint64_t checksum_of(std::span<const std::byte> bytes);
// Sixteen hexadecimal digits.
std::string checksum_text(std::uint64_t checksum);

}  // namespace plait
