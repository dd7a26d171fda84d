// The lines of an edge list as text, and their layout: what the first pass over them finds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plait/base/error.h"
#include "plait/io/edge_list_file.h"
#include "plait/io/edge_list_head.h"
#include "plait/io/text.h"

namespace plait::edge_lines {

inline constexpr std::uint64_t kMostIds = ~std::uint64_t{0};
inline constexpr std::string_view kNoData = "{}";  // as networkx ends the line of a plain edge

struct Layout {
  std::vector<std::string_view> chunks;
  bool weighted = false;
  bool swapped = false;              // the first column is the target, the second the source
  std::uint64_t most = kMostIds;     // the largest id that is allowed
  std::vector<std::uint64_t> edges;  // per chunk; after the first pass: where each begins
  std::vector<std::uint64_t> small;  // ids below 2^32 per chunk, likewise
  std::uint64_t total = 0;           // edges
  std::uint64_t total_small = 0;     // ids below 2^32
  std::uint64_t largest = 0;         // id
  std::uint64_t vertices = 0;        // by the counts of the first line; 0: it has none
  std::uint64_t first_id = 0;        // of these vertices
  std::string undirected;            // the comment that says so, and its line
  std::string comment;               // the comment that counts vertices, and its line
  std::uint64_t comment_vertices = 0;
  std::vector<std::string> notes;  // how doubtful lines were read
};

struct Line {
  std::uint64_t source = 0;
  std::uint64_t target = 0;
  float weight = 1;
};

// Skips blanks, or one comma among blanks, between columns. Returns whether there is a comma.
inline bool skip_separator(Cursor& cursor) {
  cursor.skip_blanks();
  const bool comma = cursor.peek() == ',';
  if (comma) cursor.advance();
  cursor.skip_blanks();
  return comma;
}

inline bool ends_without_data(Cursor& cursor) {
  skip_separator(cursor);
  return cursor.skip(kNoData) && cursor.end_line();
}

[[noreturn]] inline void fail_id(const TextInput& input, const char* at, const char* what,
                                 std::uint64_t most) {
  std::uint64_t id = 0;
  Cursor cursor(input.text().substr(static_cast<std::size_t>(at - input.text().data())));
  if (!cursor.read(id)) input.fail_number(at, what, 0, most);
  input.fail(at, fmt::format("{} '{}' is outside 0..{}", what, id, most),
             fmt::format("correct the line, or the number of vertices, {}", most + 1));
}

inline void read_id(const TextInput& input, Cursor& cursor, const char* what, std::uint64_t most,
                    std::uint64_t& id) {
  const char* const at = cursor.at();
  if (!cursor.read(id) || id > most) [[unlikely]]
    fail_id(input, at, what, most);
}

// Reads the first two columns. Returns whether there is a comma between them.
inline bool read_ends(const TextInput& input, Cursor& cursor, const Layout& layout, Line& line) {
  const auto read_source = [&] { read_id(input, cursor, "source", layout.most, line.source); };
  const auto read_target = [&] { read_id(input, cursor, "target", layout.most, line.target); };
  layout.swapped ? read_target() : read_source();
  const bool comma = skip_separator(cursor);
  layout.swapped ? read_source() : read_target();
  return comma;
}

// `1,000 2` has a thousand or a weight.
[[noreturn]] inline void fail_separators(const TextInput& input, const char* line) {
  input.fail(line, input.quote_line(line) + " has a comma between two of its columns alone",
             "separate all columns by commas or by blanks, and write numbers without commas");
}

// Calls take(line) for every edge of a chunk, in order.
template <class Take>
void for_each_line(const TextInput& input, const Layout& layout, std::string_view chunk,
                   Take take) {
  for (Cursor cursor(chunk); cursor.next_line();) {
    if (begins_comment(cursor.peek())) {
      cursor.skip_line();
      continue;
    }
    const char* const begin = cursor.at();
    Line line;
    const bool comma = read_ends(input, cursor, layout, line);
    if (layout.weighted) {
      if (skip_separator(cursor) != comma && !cursor.at_line_end()) [[unlikely]]
        fail_separators(input, begin);
      read_weight(input, cursor, line.weight);
    }
    if (!cursor.end_line() && (layout.weighted || !ends_without_data(cursor))) [[unlikely]]
      input.fail(begin,
                 fmt::format("{} has more than the {} columns of the first edge",
                             input.quote_line(begin), layout.weighted ? 3 : 2),
                 "give 'source target' or 'source target weight' on every line");
    take(line);
  }
}

// Makes the first pass: counts edges, and decides whether the first line is one of them.
Layout measure(const TextInput& input, const EdgeListOptions& options);

}  // namespace plait::edge_lines
