// Two passes over chunks of the text: the first counts words, which tells the second which of them
// are offsets, targets and weights.
#include "plait/io/ligra.h"

#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/io/rows.h"
#include "plait/io/text.h"

namespace plait {
namespace {

struct LigraHeader {
  bool weighted = false;
  std::uint64_t vertices = 0;
  std::uint64_t edges = 0;
  const char* counts = nullptr;
  std::size_t body = 0;  // where the offsets begin

  std::uint64_t words() const { return vertices + edges * (weighted ? 2 : 1); }
};

LigraHeader read_ligra_header(const TextInput& input) {
  Cursor cursor(input.text());
  cursor.next_line();
  const char* const kind = cursor.at();
  cursor.skip_word();
  const std::string_view word(kind, static_cast<std::size_t>(cursor.at() - kind));
  LigraHeader header{.weighted = word == "WeightedAdjacencyGraph"};
  if (!header.weighted && word != "AdjacencyGraph")
    input.fail(kind,
               input.quote_line(kind) + " is neither AdjacencyGraph nor WeightedAdjacencyGraph",
               "give a file in Ligra's adjacency format");
  cursor.next_line();
  header.counts = cursor.at();
  read_number(input, cursor, "the number of vertices", {1, kMostCounted}, header.vertices);
  cursor.next_line();
  read_number(input, cursor, "the number of edges", {0, kMostCounted}, header.edges);
  header.body = static_cast<std::size_t>(cursor.at() - input.text().data());
  return header;
}

// Reads the words of a chunk into the arrays. The first of them has the number `word`.
template <VertexId V>
void fill_chunk(const TextInput& input, const LigraHeader& header, std::string_view chunk,
                std::uint64_t word, std::tuple<EdgeOffset*, V*, float*> arrays) {
  const auto [offsets, targets, weights] = arrays;
  const std::uint64_t last = header.vertices - 1;
  for (Cursor cursor(chunk); cursor.next_line(); ++word) {
    if (word < header.vertices) {
      read_number(input, cursor, "offset", {0, header.edges}, offsets[word]);
    } else if (word < header.vertices + header.edges) {
      std::uint64_t target = 0;
      read_number(input, cursor, "target", {0, last}, target);
      targets[word - header.vertices] = static_cast<V>(target);
    } else {
      read_weight(input, cursor, weights[word - header.vertices - header.edges]);
    }
    // A comma ends a number, but not a word as the first pass counts words.
    if (!cursor.at_line_end() && !is_blank(cursor.peek())) [[unlikely]]
      input.fail(cursor.at(), input.quote_line(cursor.at()) + " is not made of numbers and blanks",
                 "correct the line");
  }
}

template <VertexId V>
Csr<V> fill(const TextInput& input, const LigraHeader& header,
            const std::vector<std::string_view>& chunks, const std::vector<std::uint64_t>& begins) {
  Buffer<EdgeOffset> offsets(header.vertices + 1);
  Buffer<V> targets(header.edges);
  Buffer<float> weights(header.weighted ? header.edges : 0);
  for_each_chunk(chunks, "reading", [&](std::size_t i) {
    fill_chunk<V>(input, header, chunks[i], begins[i],
                  {offsets.data(), targets.data(), weights.data()});
  });
  offsets[header.vertices] = header.edges;
  require_rising(offsets.span(), header.edges, input.file());
  return {std::move(offsets), std::move(targets), std::move(weights)};
}

}  // namespace

AnyCsr parse_ligra(std::string_view text, const std::string& file) {
  const TextInput input(text, file);
  const LigraHeader header = read_ligra_header(input);
  const std::vector<std::string_view> chunks = input.chunks(header.body);
  std::vector<std::uint64_t> words(chunks.size());
  for_each_chunk(chunks, "counting", [&](std::size_t i) { words[i] = count_words(chunks[i]); });
  const std::uint64_t total = exclusive_sum(words);
  if (total != header.words())
    input.fail(header.counts,
               fmt::format("{} vertices and {} edges make {} numbers, but the file holds {}",
                           header.vertices, header.edges, header.words(), total),
               "correct the counts, or get the whole file");
  if (header.vertices <= kMaxVertices32) return fill<std::uint32_t>(input, header, chunks, words);
  return fill<std::uint64_t>(input, header, chunks, words);
}

void write_ligra(const Dataset& dataset, AtomicFile& file) {
  using Limits = std::numeric_limits<std::int32_t>;
  require_whole_weights(dataset.graph, Limits::min(), Limits::max(), file.path());
  std::visit(
      [&](const auto& graph) {
        const auto write = [&](const auto& values, std::uint64_t count) {
          write_text(count, file, [&](std::string& text, std::uint64_t i) {
            append_number(text, static_cast<std::int64_t>(values[i]));
            text += '\n';
          });
        };
        file.write(fmt::format("{}AdjacencyGraph\n{}\n{}\n", graph.weighted() ? "Weighted" : "",
                               graph.vertices(), graph.edges()));
        write(graph.offsets, graph.vertices());
        write(graph.neighbours, graph.edges());
        write(graph.weights, graph.weights.size());
      },
      out_rows(dataset));
}

}  // namespace plait
