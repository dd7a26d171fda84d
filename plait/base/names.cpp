#include "plait/base/names.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "plait/base/error.h"

namespace plait {

std::size_t place_of_word(std::string_view what, std::string_view word,
                          std::span<const std::string_view> words, std::size_t first_listed) {
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  const auto listed = words.subspan(first_listed);
  throw UsageError(fmt::format("{} '{}' is unknown; use {} or {}", what, word,
                               fmt::join(listed.first(listed.size() - 1), ", "), listed.back()));
}

}  // namespace plait
