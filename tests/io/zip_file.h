// Zip archives of stored members made by hand, so that any field can be wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plait {

struct ZipMember {
  std::string name = {};
  std::string data = {};  // as it lies in the archive
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::optional<std::uint32_t> size = {};             // unpacked; that of data if not given
  std::optional<std::uint32_t> compressed_size = {};  // the same
  std::uint32_t crc_error = 0;
  std::optional<std::uint32_t> offset = {};  // of another member, to lie over it
};

// Returns CRC-32 of IEEE 802.3, bit by bit.
inline std::uint32_t crc32_of(const std::string& data) {
  std::uint32_t crc = ~0u;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

inline std::string zip_of(const std::vector<ZipMember>& members) {
  const auto number = [](std::uint32_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xff);
    return text;
  };
  std::string local, central;
  for (const ZipMember& m : members) {
    const auto size = static_cast<std::uint32_t>(m.data.size());
    // The part that the local header and the central directory have in common.
    const std::string common =
        number(20, 2) + number(m.flags, 2) + number(m.method, 2) + number(0, 2) + number(0x21, 2) +
        number(crc32_of(m.data) ^ m.crc_error, 4) + number(m.compressed_size.value_or(size), 4) +
        number(m.size.value_or(size), 4) + number(static_cast<std::uint32_t>(m.name.size()), 2) +
        number(0, 2);
    const auto here = static_cast<std::uint32_t>(local.size());
    local += "PK\x03\x04" + common + m.name + m.data;
    central += "PK\x01\x02" + number(20, 2) + common + number(0, 2) + number(0, 2) + number(0, 2) +
               number(0, 4) + number(m.offset.value_or(here), 4) + m.name;
  }
  const auto count = static_cast<std::uint32_t>(members.size());
  return local + central + "PK\x05\x06" + number(0, 4) + number(count, 2) + number(count, 2) +
         number(static_cast<std::uint32_t>(central.size()), 4) +
         number(static_cast<std::uint32_t>(local.size()), 4) + number(0, 2);
}

}  // namespace plait
