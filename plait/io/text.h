// Shared code of the readers and writers of text formats: cutting a text at line ends, walking over
// its lines and numbers, and naming the place of an error.
//
// A text is read in parallel, in chunks that end at line ends and whose sizes depend on the text
// alone. A cursor walks over one chunk. Blanks are spaces, tabs and carriage returns, so that lines
// may end in CR LF; the last line need not end at all. Line numbers are not kept while reading: an
// error counts the line ends before its place.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plait/base/file.h"
#include "plait/base/parallel.h"
#include "plait/graph/csr.h"

namespace plait {

// A text and the name of its file. Any number of threads may use it.
class TextInput {
 public:
  // Keeps views of both: they must live longer. `file` is the name used in errors. UTF-8's mark of
  // the byte order, which some editors write first, is no part of the text.
  TextInput(std::string_view text, const std::string& file)
      : text_(text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text), file_(file) {}

  std::string_view text() const { return text_; }
  const std::string& file() const { return file_; }
  // Returns the bytes that a reader may allocate: twice the size of the file, and 1 MiB.
  std::uint64_t memory_limit() const { return 2 * std::uint64_t{text_.size()} + (1u << 20); }
  // Returns consecutive pieces of the text from `begin` to its end, each ending at a line end.
  std::vector<std::string_view> chunks(std::size_t begin = 0) const;

  // Returns "line 7" for a place in the text.
  std::string line_of(const char* at) const;
  // Throws the InputError of the line that holds `at`.
  [[noreturn]] void fail(const char* at, const std::string& problem,
                         const std::string& remedy) const;
  // Throws an InputError for a number at `at` that is not a whole number in low .. high; `what`
  // names it.
  [[noreturn]] void fail_number(const char* at, std::string_view what, std::uint64_t low,
                                std::uint64_t high) const;
  // Throws an InputError for a weight at `at` that is not a finite number in single precision.
  [[noreturn]] void fail_weight(const char* at) const;
  // Returns the line that holds `at`, in quotes, fit for a message: shortened, without control
  // characters.
  std::string quote_line(const char* at) const;

 private:
  std::string_view text_;
  const std::string& file_;
};

// The largest count of vertices or edges that a file may state: more than any memory holds, and few
// enough that bytes per vertex do not overflow.
inline constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 56;

// Calls body(i) for every chunk and reports its bytes to the bar named `label`. If several bodies
// throw, the exception of the first chunk is rethrown, so that the error does not depend on timing.
void for_each_chunk(const std::vector<std::string_view>& chunks, const std::string& label,
                    const std::function<void(std::size_t)>& body);

// Turns counts, one per chunk, into the places where the chunks begin; returns the sum.
std::uint64_t exclusive_sum(std::vector<std::uint64_t>& counts);

// Returns the number of lines that hold more than blanks.
std::uint64_t count_lines(std::string_view chunk);

// Returns the number of words in the lines, that is, of runs of characters other than blanks.
std::uint64_t count_words(std::string_view chunk);

// Classes of characters. A number ends at a blank, a line end or a comma.
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline bool ends_number(char c) { return is_blank(c) || c == '\n' || c == ','; }

// Returns the value of eight decimal digits, the first of them in the lowest byte: neighbours are
// joined to numbers of two, four and eight digits, in all lanes at once.
inline std::uint64_t join_digits(std::uint64_t digits) {
  digits = (digits * 10 + (digits >> 8)) & 0x00ff00ff00ff00ffu;
  digits = (digits * 100 + (digits >> 16)) & 0x0000ffff0000ffffu;
  return (digits * 10000 + (digits >> 32)) & 0xffffffffu;
}

// A number that was read, and where its digits end; null if there is none. Returned by value, so
// that a cursor stays in registers.
template <class T>
struct Found {
  const char* end = nullptr;
  T value = 0;
};

// Reads digits whose value is below 2^64, one by one.
Found<std::uint64_t> find_unsigned_slowly(const char* at, const char* end);

// Reads the same, faster. std::from_chars takes one branch per digit, and mispredicts the last one
// of most ids; here up to seven digits are read at once, without a branch on their number.
inline Found<std::uint64_t> find_unsigned(const char* at, const char* end) {
  static_assert(std::endian::native == std::endian::little, "digits are joined in this order");
  if (end - at < 8) return find_unsigned_slowly(at, end);
  std::uint64_t digits;
  std::memcpy(&digits, at, sizeof digits);
  digits ^= 0x3030303030303030u;
  // The top bit of every byte above 9; bytes after the first such one may be marked wrongly.
  const std::uint64_t others = ((digits + 0x7676767676767676u) | digits) & 0x8080808080808080u;
  if (others == 0) return find_unsigned_slowly(at, end);
  const int bits = std::countr_zero(others) & ~7;  // 8 a digit
  if (bits == 0) return {};
  return {at + bits / 8, join_digits(digits << (64 - bits))};
}

// Reads a finite number. Numbers too small for single precision become 0.
Found<float> find_float(const char* at, const char* end);

// A place in a chunk, which must live longer. Nothing is read beyond the chunk's end.
class Cursor {
 public:
  // Begins at the beginning of the chunk.
  explicit Cursor(std::string_view chunk) : at_(chunk.data()), end_(at_ + chunk.size()) {}

  // The place, and the character there; at the end of the chunk it counts as a line end. advance()
  // must not be called there.
  const char* at() const { return at_; }
  bool at_end() const { return at_ == end_; }
  char peek() const { return at_ == end_ ? '\n' : *at_; }
  bool at_line_end() const { return peek() == '\n'; }
  void advance() { ++at_; }
  // Move past blanks, past a word, and past the end of the line.
  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) ++at_;
  }
  // Moves past these characters; returns false, without moving, if others are next.
  bool skip(std::string_view characters) {
    const bool found =
        std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(characters);
    if (found) at_ += characters.size();
    return found;
  }
  void skip_word() {
    while (at_ != end_ && !is_blank(*at_) && *at_ != '\n') ++at_;
  }
  void skip_line() {
    while (at_ != end_ && *at_++ != '\n') {
    }
  }
  // Moves from the start of a line to the first character, not blank, of the next line that has
  // one. Returns false if there is none.
  bool next_line() {
    while (at_ != end_ && (is_blank(*at_) || *at_ == '\n')) ++at_;
    return at_ != end_;
  }
  // Moves past the end of the line; returns false if something other than blanks comes before it.
  bool end_line() {
    skip_blanks();
    if (!at_line_end()) return false;
    if (at_ != end_) ++at_;
    return true;
  }
  // Moves past a number; returns false, without moving, if there is none or it does not end where
  // its digits end.
  bool read(std::uint64_t& value) { return move_past(find_unsigned(at_, end_), value); }
  bool read(float& value) { return move_past(find_float(at_, end_), value); }

 private:
  template <class T>
  bool move_past(const Found<T>& found, T& value) {
    if (found.end == nullptr || (found.end != end_ && !ends_number(*found.end))) return false;
    at_ = found.end;
    value = found.value;
    return true;
  }

  const char* at_;
  const char* end_;
};

// Moves past blanks and a whole number from range.first to range.second. Throws an InputError, in
// which `what` names the number.
inline void read_number(const TextInput& input, Cursor& cursor, std::string_view what,
                        std::pair<std::uint64_t, std::uint64_t> range, std::uint64_t& value) {
  cursor.skip_blanks();
  const char* const at = cursor.at();
  if (!cursor.read(value) || value < range.first || value > range.second) [[unlikely]]
    input.fail_number(at, what, range.first, range.second);
}

// Moves past blanks and a weight, which is finite. Throws as read_number().
inline void read_weight(const TextInput& input, Cursor& cursor, float& weight) {
  cursor.skip_blanks();
  const char* const at = cursor.at();
  if (!cursor.read(weight)) [[unlikely]]
    input.fail_weight(at);
}

// Appends a number as text, the shortest that reads back as the same number.
template <class T>
void append_number(std::string& text, T value) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// Writes the text that append(text, i) appends for i = 0 .. count - 1, in this order, by all
// threads.
template <class Append>
void write_text(std::uint64_t count, AtomicFile& file, Append append) {
  constexpr std::uint64_t kItems = 4096, kPieces = 32;
  std::vector<std::string> pieces(kPieces);
  for (std::uint64_t first = 0; first < count; first += kItems * kPieces) {
    parallel_for(kPieces, [&](std::size_t piece) {
      std::string& text = pieces[piece];
      text.clear();
      const std::uint64_t begin = first + piece * kItems;
      const std::uint64_t end = std::min(begin + kItems, count);
      for (std::uint64_t i = begin; i < end; ++i) append(text, i);
    });
    for (const std::string& text : pieces) file.write(text);
  }
}

// Writes the lines that line(text, row, edge) appends for every edge of the graph, row by row.
template <VertexId V, class Line>
void write_edge_lines(const Csr<V>& graph, AtomicFile& file, Line line) {
  write_text(graph.vertices(), file, [&](std::string& text, std::uint64_t row) {
    for (EdgeOffset e = graph.offsets[row]; e < graph.offsets[row + 1]; ++e) line(text, row, e);
  });
}

}  // namespace plait
