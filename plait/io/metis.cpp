// Two passes over chunks of the text: the first counts lines and edges, so that the second fills
// arrays of just the right size.
#include "plait/io/metis.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/setting.h"
#include "plait/io/text.h"

namespace plait {
namespace {

struct MetisHeader {
  const char* line = nullptr;
  std::uint64_t vertices = 0;
  std::uint64_t edges = 0;
  bool weighted = false;             // the edges
  std::uint64_t vertex_numbers = 0;  // sizes and weights, before the neighbours of each line
  std::size_t body = 0;              // where the vertices begin
};

bool begins_comment(char c) { return c == '%'; }

MetisHeader read_metis_header(const TextInput& input) {
  Cursor cursor(input.text());
  while (cursor.next_line() && begins_comment(cursor.peek())) cursor.skip_line();
  MetisHeader header{.line = cursor.at()};
  if (cursor.at_end()) input.fail(cursor.at(), "the header is missing", "add 'vertices edges'");
  read_number(input, cursor, "the number of vertices", {1, kMostCounted}, header.vertices);
  read_number(input, cursor, "the number of edges", {0, kMostCounted}, header.edges);
  std::uint64_t format = 0, weights = 1;
  cursor.skip_blanks();
  if (!cursor.at_line_end()) read_number(input, cursor, "fmt", {0, 111}, format);
  const bool sizes = format >= 100, weighted_vertices = format / 10 % 10 == 1;
  if (format % 10 > 1 || format / 10 % 10 > 1)
    input.fail(header.line, fmt::format("fmt {} has digits other than 0 and 1", format),
               "correct the header");
  cursor.skip_blanks();
  if (!cursor.at_line_end())
    read_number(input, cursor, "ncon", {weighted_vertices, 1 << 20}, weights);
  if (!cursor.end_line())
    input.fail(header.line, input.quote_line(header.line) + " has more than 4 numbers",
               "give only 'vertices edges fmt ncon'");
  header.weighted = format % 10 == 1;
  header.vertex_numbers = sizes + (weighted_vertices ? weights : 0);
  header.body = static_cast<std::size_t>(cursor.at() - input.text().data());
  return header;
}

// Calls take(cursor, begin) for the line of each vertex, with a cursor at its first word; it must
// leave the cursor at the end of the line.
template <class Take>
void for_each_line(std::string_view chunk, Take take) {
  for (Cursor cursor(chunk); !cursor.at_end();) {
    if (begins_comment(cursor.peek())) {
      cursor.skip_line();
      continue;
    }
    cursor.skip_blanks();
    take(cursor, cursor.at());
    cursor.end_line();
  }
}

struct Counts {
  std::vector<std::uint64_t> lines, entries;  // per chunk
};

void count_chunk(const TextInput& input, const MetisHeader& header, std::string_view chunk,
                 std::uint64_t& lines, std::uint64_t& entries) {
  const std::uint64_t an_entry = header.weighted ? 2 : 1;
  if (header.vertex_numbers == 0 && an_entry == 1 && chunk.find('%') == std::string_view::npos) {
    lines = static_cast<std::uint64_t>(std::count(chunk.begin(), chunk.end(), '\n')) +
            (chunk.back() != '\n');
    entries = count_words(chunk);
    return;
  }
  for_each_line(chunk, [&](Cursor& cursor, const char* begin) {
    std::uint64_t words = 0;
    for (; !cursor.at_line_end(); cursor.skip_blanks(), ++words) cursor.skip_word();
    // Lines after the last vertex may be empty, which only the second pass can tell.
    if (words > 0 &&
        (words < header.vertex_numbers || (words - header.vertex_numbers) % an_entry != 0))
      input.fail(begin,
                 fmt::format("{} has {} numbers, but needs {} for the vertex and {} per edge",
                             input.quote_line(begin), words, header.vertex_numbers, an_entry),
                 "correct the line or the header's fmt");
    ++lines;
    entries += words == 0 ? 0 : (words - header.vertex_numbers) / an_entry;
  });
}

// An empty line may stand for the last vertex without a line end.
void check_lines(const TextInput& input, const MetisHeader& header, std::uint64_t lines) {
  const bool unended = input.text().back() == '\n';
  if (lines + unended >= header.vertices) return;
  input.fail(header.line,
             fmt::format("the header promises {} vertices, but the file holds lines for {}",
                         header.vertices, lines),
             "correct the header, or get the whole file");
}

template <VertexId V>
class Filler {
 public:
  Filler(const TextInput& input, const MetisHeader& header, std::uint64_t entries)
      : input_(input),
        header_(header),
        offsets_(header.vertices + 1),
        neighbours_(entries),
        weights_(header.weighted ? entries : 0) {
    // The last vertex may be without a line.
    offsets_[header.vertices - 1] = offsets_[header.vertices] = entries;
  }

  void fill(std::string_view chunk, std::uint64_t row, EdgeOffset entry) {
    for_each_line(chunk, [&](Cursor& cursor, const char* begin) {
      if (row < header_.vertices)
        offsets_[row] = entry;
      else if (!cursor.at_line_end())
        input_.fail(begin,
                    fmt::format("line {} of a vertex, but the header promises {} vertices", row + 1,
                                header_.vertices),
                    "correct the header");
      ++row;
      std::uint64_t skipped = 0;
      for (std::uint64_t i = 0; i < header_.vertex_numbers && row <= header_.vertices; ++i)
        read_number(input_, cursor, "a size or weight of the vertex", {0, kMostCounted}, skipped);
      for (cursor.skip_blanks(); !cursor.at_line_end(); cursor.skip_blanks(), ++entry)
        read_entry(cursor, entry);
    });
  }

  Csr<V> finish() && { return {std::move(offsets_), std::move(neighbours_), std::move(weights_)}; }

 private:
  void read_entry(Cursor& cursor, EdgeOffset entry) {
    std::uint64_t neighbour = 0;
    read_number(input_, cursor, "neighbour", {1, header_.vertices}, neighbour);
    neighbours_[entry] = static_cast<V>(neighbour - 1);
    if (header_.weighted) read_weight(input_, cursor, weights_[entry]);
  }

  const TextInput& input_;
  const MetisHeader& header_;
  Buffer<EdgeOffset> offsets_;
  Buffer<V> neighbours_;
  Buffer<float> weights_;
};

template <VertexId V>
AnyCsr fill(const TextInput& input, const MetisHeader& header,
            const std::vector<std::string_view>& chunks, Counts counts) {
  const std::uint64_t entries = exclusive_sum(counts.entries);
  exclusive_sum(counts.lines);
  Filler<V> filler(input, header, entries);
  for_each_chunk(chunks, "reading", [&](std::size_t i) {
    filler.fill(chunks[i], counts.lines[i], counts.entries[i]);
  });
  return std::move(filler).finish();
}

std::uint64_t count_loops(const AnyCsr& any) {
  return std::visit(
      [](const auto& graph) {
        std::uint64_t loops = 0;
        for (std::uint64_t i = 0; i < graph.vertices(); ++i)
          for (const auto j : graph.row(i)) loops += i == j;
        return loops;
      },
      any);
}

void check_edges(const TextInput& input, const MetisHeader& header, const AnyCsr& graph) {
  const EdgeOffset entries = edge_count(graph);
  if (entries == 2 * header.edges || entries + count_loops(graph) == 2 * header.edges) return;
  input.fail(
      header.line,
      fmt::format("the header promises {} edges, but the lines hold {} ends of edges, and each "
                  "edge has two",
                  header.edges, entries),
      "correct the header, or get the whole file");
}

}  // namespace

ParsedMetis parse_metis(std::string_view text, const std::string& file) {
  const TextInput input(text, file);
  const MetisHeader header = read_metis_header(input);
  const std::vector<std::string_view> chunks = input.chunks(header.body);
  Counts counts{std::vector<std::uint64_t>(chunks.size()),
                std::vector<std::uint64_t>(chunks.size())};
  for_each_chunk(chunks, "counting", [&](std::size_t i) {
    count_chunk(input, header, chunks[i], counts.lines[i], counts.entries[i]);
  });
  std::uint64_t lines = 0;
  for (const std::uint64_t n : counts.lines) lines += n;
  check_lines(input, header, lines);

  ParsedMetis parsed;
  AnyCsr graph = header.vertices <= kMaxVertices32
                     ? fill<std::uint32_t>(input, header, chunks, std::move(counts))
                     : fill<std::uint64_t>(input, header, chunks, std::move(counts));
  check_edges(input, header, graph);
  graph = with_sorted_rows(std::move(graph));
  require_symmetric(graph, file);
  parsed.rows = {std::move(graph), true};
  if (header.vertex_numbers > 0)
    parsed.warnings.emplace_back("sizes and weights of vertices are left out");
  return parsed;
}

void write_metis(const Dataset& dataset, AtomicFile& file) {
  require(dataset.symmetric,
          "{}: a METIS file holds an undirected graph, and this one is directed; use {} "
          "or another format",
          file.path(), setting("undirected"));
  require(count_loops(dataset.graph) == 0,
          "{}: a METIS file holds no edge from a vertex to itself; use {} or another format",
          file.path(), setting("no-loops"));
  require_whole_weights(dataset.graph, 1, std::numeric_limits<std::int32_t>::max(), file.path());
  file.write(fmt::format("{} {}{}\n", dataset.vertices(), dataset.edges() / 2,
                         is_weighted(dataset.graph) ? " 001" : ""));
  std::visit(
      [&](const auto& graph) {
        write_text(graph.vertices(), file, [&](std::string& text, std::uint64_t row) {
          for (EdgeOffset e = graph.offsets[row]; e < graph.offsets[row + 1]; ++e) {
            if (e > graph.offsets[row]) text += ' ';
            append_number(text, std::uint64_t{graph.neighbours[e]} + 1);
            if (graph.weighted())
              append_number(text += ' ', static_cast<std::int64_t>(graph.weights[e]));
          }
          text += '\n';
        });
      },
      dataset.graph);
}

}  // namespace plait
