// A JSON value of a file in the text of an error.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace plait {

// Returns a number, text or word as it is written, cut after 40 bytes; of a list or an object only
// the type, because writing it takes a call per level, and a file may nest as deep as it likes.
inline std::string short_text(const nlohmann::json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  constexpr std::size_t kLongest = 40;
  const auto replace = nlohmann::json::error_handler_t::replace;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace plait
