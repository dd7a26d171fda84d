// The kinds of an edge list's first line.
#pragma once

#include <cstdint>
#include <string_view>

namespace plait {

// `guess`: counts if they fit the other lines, else an edge.
enum class FirstLine : std::uint8_t { guess, edge, counts, skip };

// The words are auto, edge, counts, skip. parse_first_line() throws UsageError.
FirstLine parse_first_line(std::string_view word);
std::string_view to_string(FirstLine line);

}  // namespace plait
