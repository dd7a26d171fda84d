// The words for the values of an enumeration, in options, files and messages.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace plait {

// Returns "A", "A or B", "A, B or C" for the last word "or".
std::string in_words(std::span<const std::string_view> words, std::string_view last);

// Returns the place of `word` in `words`. Throws UsageError "WHAT 'WORD' is unknown; use A, B or
// C", which lists the words from number `first_listed` on.
std::size_t place_of_word(std::string_view what, std::string_view word,
                          std::span<const std::string_view> words, std::size_t first_listed = 0);

// The words of an enumeration whose values are 0 to N - 1.
template <class Enum, std::size_t N>
struct Names {
  std::string_view what;                  // names the enumeration in messages: "partition scheme"
  std::array<std::string_view, N> words;  // by value
  std::size_t first_listed = 0;

  // Returns the word for a value, and the value of a word. parse() throws as place_of_word().
  std::string_view of(Enum value) const { return words[static_cast<std::size_t>(value)]; }
  Enum parse(std::string_view word) const {
    return static_cast<Enum>(place_of_word(what, word, words, first_listed));
  }
};

}  // namespace plait
