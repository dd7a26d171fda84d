// Two passes over chunks of the text: the first counts arcs, so that the promise of the problem
// line is checked before memory is taken, the second fills exact arrays.
#include "plait/io/dimacs.h"

#include <limits>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/io/rows.h"
#include "plait/io/text.h"
#include "plait/io/vertex_count.h"

namespace plait {
namespace {

struct DimacsHeader {
  const char* line = nullptr;
  std::uint64_t vertices = 0;
  std::uint64_t arcs = 0;
  std::size_t body = 0;  // where the arcs begin
};

// Moves from the start of a line past its blanks and its type, which is returned in `type`.
// Comments are passed over. Returns false at the end.
bool next_line(const TextInput& input, Cursor& cursor, char& type) {
  while (cursor.next_line()) {
    type = cursor.peek();
    if (type == 'c') {
      cursor.skip_line();
      continue;
    }
    const char* const begin = cursor.at();
    cursor.advance();
    if ((type == 'p' || type == 'a') && is_blank(cursor.peek())) return true;
    input.fail(begin, input.quote_line(begin) + " is not a line of c, p or a",
               "correct the line; Plait reads .gr files of the DIMACS shortest path challenge");
  }
  return false;
}

DimacsHeader read_dimacs_header(const TextInput& input) {
  Cursor cursor(input.text());
  char type = 0;
  if (!next_line(input, cursor, type) || type != 'p')
    input.fail(cursor.at(), "the problem line does not come first", "add 'p sp vertices arcs'");
  DimacsHeader header{.line = cursor.at()};
  cursor.skip_blanks();
  const char* const kind = cursor.at();
  cursor.skip_word();
  if (std::string_view(kind, static_cast<std::size_t>(cursor.at() - kind)) != "sp")
    input.fail(header.line, input.quote_line(header.line) + " is not a shortest path problem",
               "give 'p sp vertices arcs'");
  read_number(input, cursor, "the number of vertices", {1, kMostCounted}, header.vertices);
  read_number(input, cursor, "the number of arcs", {0, kMostCounted}, header.arcs);
  if (!cursor.end_line())
    input.fail(header.line, input.quote_line(header.line) + " has more than 2 numbers",
               "give 'p sp vertices arcs'");
  header.body = static_cast<std::size_t>(cursor.at() - input.text().data());
  return header;
}

struct Arc {
  std::uint64_t source = 0;  // counted from 0
  std::uint64_t target = 0;
  float weight = 0;
};

// Calls take(arc) for every arc of a chunk, in order.
template <class Take>
void for_each_arc(const TextInput& input, const DimacsHeader& header, std::string_view chunk,
                  Take take) {
  Cursor cursor(chunk);
  for (char type = 0; next_line(input, cursor, type);) {
    const char* const begin = cursor.at();
    if (type == 'p') input.fail(begin, "there is a second problem line", "keep only the first");
    Arc arc;
    read_number(input, cursor, "source", {1, header.vertices}, arc.source);
    read_number(input, cursor, "target", {1, header.vertices}, arc.target);
    read_weight(input, cursor, arc.weight);
    if (!cursor.end_line()) [[unlikely]]
      input.fail(begin, input.quote_line(begin) + " has more than the 3 numbers of an arc",
                 "give 'a source target weight'");
    --arc.source;
    --arc.target;
    take(arc);
  }
}

// Counts the lines of arcs; their content is left to the second pass.
std::uint64_t count_arcs(std::string_view chunk) {
  std::uint64_t arcs = 0;
  for (Cursor cursor(chunk); cursor.next_line(); cursor.skip_line()) arcs += cursor.peek() == 'a';
  return arcs;
}

template <VertexId V>
EdgeList<V> fill(const TextInput& input, const DimacsHeader& header,
                 const std::vector<std::string_view>& chunks,
                 const std::vector<std::uint64_t>& begins) {
  EdgeList<V> list{header.vertices, Buffer<V>(header.arcs), Buffer<V>(header.arcs),
                   Buffer<float>(header.arcs)};
  for_each_chunk(chunks, "reading", [&](std::size_t i) {
    std::uint64_t edge = begins[i];
    for_each_arc(input, header, chunks[i], [&](const Arc& arc) {
      list.source[edge] = static_cast<V>(arc.source);
      list.target[edge] = static_cast<V>(arc.target);
      list.weight[edge++] = arc.weight;
    });
  });
  return list;
}

}  // namespace

AnyEdgeList parse_dimacs(std::string_view text, const std::string& file, std::uint64_t told) {
  const TextInput input(text, file);
  const DimacsHeader header = read_dimacs_header(input);
  const std::vector<std::string_view> chunks = input.chunks(header.body);
  std::vector<std::uint64_t> arcs(chunks.size());
  for_each_chunk(chunks, "counting", [&](std::size_t i) { arcs[i] = count_arcs(chunks[i]); });
  const std::uint64_t total = exclusive_sum(arcs);
  if (total != header.arcs)
    input.fail(
        header.line,
        fmt::format("the header promises {} arcs, but the file holds {}", header.arcs, total),
        "correct the problem line, or get the whole file");
  if (const std::string doubt = doubt_of_vertices(header.vertices, total, told); !doubt.empty())
    input.fail(header.line, doubt, remedy_of_vertices(header.vertices, told));
  if (header.vertices <= kMaxVertices32) return fill<std::uint32_t>(input, header, chunks, arcs);
  return fill<std::uint64_t>(input, header, chunks, arcs);
}

void write_dimacs(const Dataset& dataset, AtomicFile& file) {
  using Limits = std::numeric_limits<std::int32_t>;
  require_whole_weights(dataset.graph, Limits::min(), Limits::max(), file.path());
  file.write(fmt::format("p sp {} {}\n", dataset.vertices(), dataset.edges()));
  std::visit(
      [&](const auto& graph) {
        write_edge_lines(graph, file, [&](std::string& text, std::uint64_t row, EdgeOffset e) {
          append_number(text += "a ", std::uint64_t{graph.neighbours[e]} + 1);
          append_number(text += ' ', row + 1);
          append_number(text += ' ', static_cast<std::int64_t>(graph.weight(e)));
          text += '\n';
        });
      },
      dataset.graph);
}

}  // namespace plait
