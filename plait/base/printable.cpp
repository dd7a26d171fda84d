#include "plait/base/printable.h"

#include <cstddef>

namespace plait {
namespace {

// Returns the bytes of the character with which the text begins, 0 if it begins with none. The
// first byte tells how many there are, and from which value on the second one has no shorter form.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return byte(i) >= 0x80 && byte(i) < 0xc0; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || !follows(1)) return 0;
  if (first < 0xe0) return 2;
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool beyond = first == 0xf4 && second >= 0x90;
  if (overlong || surrogate || beyond || !follows(2)) return 0;
  if (first < 0xf0) return 3;
  return follows(3) ? 4 : 0;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first < 0x80) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    if (bytes == 0 || is_control(character))
      shown += '?';
    else
      shown += character;
    text.remove_prefix(character.size());
  }
  return shown;
}

}  // namespace plait
