#include "plait/base/names.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "plait/base/error.h"

namespace plait {

std::string in_words(std::span<const std::string_view> words, std::string_view last) {
  if (words.size() < 2) return fmt::format("{}", fmt::join(words, ""));
  return fmt::format("{} {} {}", fmt::join(words.first(words.size() - 1), ", "), last,
                     words.back());
}

std::size_t place_of_word(std::string_view what, std::string_view word,
                          std::span<const std::string_view> words, std::size_t first_listed) {
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  throw UsageError(fmt::format("{} '{}' is unknown; use {}", what, word,
                               in_words(words.subspan(first_listed), "or")));
}

}  // namespace plait
