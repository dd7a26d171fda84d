// Two passes over chunks of the text: the first counts entries, so that the promise of the size
// line is checked before memory is taken, the second fills exact arrays.
#include "plait/io/matrix_market.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/io/text.h"
#include "plait/io/vertex_count.h"

namespace plait {
namespace {

constexpr std::string_view kSupported =
    "Plait reads '%%MatrixMarket matrix coordinate pattern|real|integer general|symmetric'";

enum class Field { pattern, real, integer };

struct MtxHeader {
  Field field = Field::pattern;
  bool symmetric = false;
  std::uint64_t vertices = 0;
  std::uint64_t entries = 0;
  const char* size_line = nullptr;
  std::size_t body = 0;  // where the entries begin

  bool weighted() const { return field != Field::pattern; }
};

struct Entry {
  std::uint64_t row = 0;  // counted from 0
  std::uint64_t column = 0;
  float value = 1;
};

std::vector<std::string> words_in_lower_case(std::string_view line) {
  std::vector<std::string> words(1);
  for (const char c : line) {
    if (!is_blank(c))
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Returns the place of `word` among the supported ones.
std::size_t choose(const TextInput& input, const char* what, const std::string& word,
                   std::initializer_list<std::string_view> supported) {
  const auto found = std::find(supported.begin(), supported.end(), word);
  if (found == supported.end())
    input.fail(input.text().data(),
               fmt::format("the {} '{}' is not supported", what, word.substr(0, 40)),
               std::string(kSupported));
  return static_cast<std::size_t>(found - supported.begin());
}

MtxHeader read_banner(const TextInput& input) {
  const std::string_view text = input.text();
  const auto words = words_in_lower_case(text.substr(0, std::min(text.find('\n'), text.size())));
  if (words.size() != 5 || words[0] != "%%matrixmarket")
    input.fail(text.data(),
               "the banner " + input.quote_line(text.data()) +
                   " is not that of a "
                   "Matrix Market file",
               std::string(kSupported));
  choose(input, "object", words[1], {"matrix"});
  choose(input, "format", words[2], {"coordinate"});
  MtxHeader header;
  header.field =
      std::array{Field::pattern, Field::real,
                 Field::integer}[choose(input, "field", words[3], {"pattern", "real", "integer"})];
  header.symmetric = choose(input, "symmetry", words[4], {"general", "symmetric"}) == 1;
  return header;
}

MtxHeader read_header(const TextInput& input) {
  MtxHeader header = read_banner(input);
  const std::string_view text = input.text();
  Cursor cursor(text);
  do {
    cursor.skip_line();
  } while (cursor.next_line() && cursor.peek() == '%');
  header.size_line = cursor.at();
  if (cursor.at_end())
    input.fail(cursor.at(), "the size line is missing", "add 'rows columns entries'");
  std::uint64_t columns = 0;
  read_number(input, cursor, "the number of rows", {1, kMostCounted}, header.vertices);
  read_number(input, cursor, "the number of columns", {1, kMostCounted}, columns);
  read_number(input, cursor, "the number of entries", {0, kMostCounted}, header.entries);
  if (!cursor.end_line())
    input.fail(cursor.at(),
               "the size line " + input.quote_line(header.size_line) + " has more than 3 numbers",
               "give only 'rows columns entries'");
  if (columns != header.vertices)
    input.fail(
        header.size_line,
        fmt::format("a matrix of {} rows and {} columns is not a graph", header.vertices, columns),
        "give a square matrix");
  header.body = static_cast<std::size_t>(cursor.at() - text.data());
  return header;
}

// Moves past two ids and turns them to count from 0; returns false if they are wrong. Inlined, so
// that the cursor stays in registers: its moves from number to number bound the speed.
[[gnu::always_inline]] inline bool read_ids(Cursor& cursor, std::uint64_t vertices, Entry& entry) {
  if (!cursor.read(entry.row)) return false;
  cursor.skip_blanks();
  if (!cursor.read(entry.column)) return false;
  return --entry.row < vertices && --entry.column < vertices;
}

// Reads the ids of a wrong line again to say what is wrong: the hot loop finds out only that they
// are wrong.
[[noreturn]] void fail_ids(const TextInput& input, const char* line, std::uint64_t vertices) {
  Cursor cursor(input.text().substr(static_cast<std::size_t>(line - input.text().data())));
  std::uint64_t id = 0;
  read_number(input, cursor, "row", {1, vertices}, id);
  read_number(input, cursor, "column", {1, vertices}, id);
  throw std::logic_error("a line is wrong and right");
}

float read_value(const TextInput& input, Cursor& cursor, Field field) {
  cursor.skip_blanks();
  const char* const at = cursor.at();
  float value = 0;
  if (!cursor.read(value)) input.fail_weight(at);
  const auto digit_or_sign = [](char c) { return is_digit(c) || c == '-' || c == '+'; };
  if (field == Field::integer && !std::all_of(at, cursor.at(), digit_or_sign))
    input.fail(at, "the value in " + input.quote_line(at) + " of an integer file is not whole",
               "correct the line, or call the field real");
  return value;
}

// Calls take(entry) for every entry of a chunk, in order.
template <class Take>
void for_each_entry(const TextInput& input, const MtxHeader& header, std::string_view chunk,
                    Take take) {
  for (Cursor cursor(chunk); cursor.next_line();) {
    const char* const line = cursor.at();
    Entry entry;
    if (!read_ids(cursor, header.vertices, entry)) [[unlikely]]
      fail_ids(input, line, header.vertices);
    if (header.weighted()) entry.value = read_value(input, cursor, header.field);
    if (!cursor.end_line()) [[unlikely]]
      input.fail(line,
                 fmt::format("{} has more than the {} numbers of an entry", input.quote_line(line),
                             header.weighted() ? 3 : 2),
                 "correct the line or the banner");
    if (header.symmetric && entry.column > entry.row)
      input.fail(line,
                 fmt::format("entry ({}, {}) of a symmetric file is above the diagonal",
                             entry.row + 1, entry.column + 1),
                 "give the lower triangle only, or call the file general");
    take(entry);
  }
}

void check_count(const TextInput& input, const MtxHeader& header, std::uint64_t found) {
  if (found != header.entries)
    input.fail(
        header.size_line,
        fmt::format("the header promises {} entries, but the file holds {}", header.entries, found),
        "correct the size line, or get the whole file");
}

// 64-bit ids take 16 bytes per edge, even if the line of an edge is shorter.
void check_memory(const TextInput& input, const MtxHeader& header, std::uint64_t edges) {
  const std::uint64_t an_edge =
      (header.vertices > kMaxVertices32 ? 16 : 8) + (header.weighted() ? sizeof(float) : 0);
  if (edges * an_edge > input.memory_limit() * (header.symmetric ? 2 : 1))
    input.fail(header.size_line,
               fmt::format("{} rows, more than {}, make {} bytes of edges out of a file of {}",
                           header.vertices, kMaxVertices32, edges * an_edge, input.text().size()),
               "number the vertices without gaps");
}

template <VertexId V>
EdgeList<V> fill(const TextInput& input, const MtxHeader& header,
                 const std::vector<std::string_view>& chunks,
                 const std::vector<std::uint64_t>& begins, std::uint64_t edges) {
  EdgeList<V> list{header.vertices, Buffer<V>(edges), Buffer<V>(edges),
                   Buffer<float>(header.weighted() ? edges : 0)};
  for_each_chunk(chunks, "reading", [&](std::size_t i) {
    std::uint64_t edge = begins[i];
    const auto add = [&](std::uint64_t target, std::uint64_t source, float value) {
      list.source[edge] = static_cast<V>(source);
      list.target[edge] = static_cast<V>(target);
      if (header.weighted()) list.weight[edge] = value;
      ++edge;
    };
    for_each_entry(input, header, chunks[i], [&](const Entry& entry) {
      add(entry.row, entry.column, entry.value);
      if (header.symmetric && entry.row != entry.column) add(entry.column, entry.row, entry.value);
    });
  });
  return list;
}

}  // namespace

AnyEdgeList parse_matrix_market(std::string_view text, const std::string& file,
                                std::uint64_t told) {
  const TextInput input(text, file);
  const MtxHeader header = read_header(input);
  const std::vector<std::string_view> chunks = input.chunks(header.body);

  std::vector<std::uint64_t> lines(chunks.size());
  for_each_chunk(chunks, "counting", [&](std::size_t i) { lines[i] = count_lines(chunks[i]); });
  std::vector<std::uint64_t> edges = lines;
  check_count(input, header, exclusive_sum(lines));
  if (header.symmetric)
    for_each_chunk(chunks, "counting", [&](std::size_t i) {
      for_each_entry(input, header, chunks[i],
                     [&](const Entry& entry) { edges[i] += entry.row != entry.column; });
    });
  const std::uint64_t total = exclusive_sum(edges);
  check_memory(input, header, total);
  if (const std::string doubt = doubt_of_vertices(header.vertices, total, told); !doubt.empty())
    input.fail(header.size_line, doubt, remedy_of_vertices(header.vertices, told));
  if (header.vertices <= kMaxVertices32)
    return fill<std::uint32_t>(input, header, chunks, edges, total);
  return fill<std::uint64_t>(input, header, chunks, edges, total);
}

void write_matrix_market(const Dataset& dataset, AtomicFile& file) {
  std::visit(
      [&](const auto& graph) {
        file.write(fmt::format("%%MatrixMarket matrix coordinate {} general\n{} {} {}\n",
                               graph.weighted() ? "real" : "pattern", graph.vertices(),
                               graph.vertices(), graph.edges()));
        write_edge_lines(graph, file, [&](std::string& text, std::uint64_t row, EdgeOffset e) {
          append_number(text, row + 1);
          append_number(text += ' ', std::uint64_t{graph.neighbours[e]} + 1);
          if (graph.weighted()) append_number(text += ' ', graph.weights[e]);
          text += '\n';
        });
      },
      dataset.graph);
}

}  // namespace plait
