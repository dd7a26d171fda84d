#include "plait/io/gap.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/setting.h"

namespace plait {
namespace {

constexpr std::uint64_t kHeaderBytes = 17;
constexpr std::uint64_t kMostVertices = std::numeric_limits<std::int32_t>::max();
constexpr NpyType kInt64{'i', 8}, kInt32{'i', 4};
using Int32 = std::numeric_limits<std::int32_t>;

struct GapHeader {
  bool directed = false;
  std::uint64_t edges = 0;
  std::uint64_t vertices = 0;
};

GapHeader read_gap_header(std::span<const std::byte> bytes, const std::string& file) {
  const auto fail = [&](const char* place, const std::string& problem) {
    throw InputError(file, place, problem, "give a .sg or .wsg file of the GAP suite");
  };
  if (bytes.size() < kHeaderBytes)
    fail("header", fmt::format("{} bytes are less than its {}", bytes.size(), kHeaderBytes));
  GapHeader header;
  const auto directed = std::to_integer<unsigned>(bytes[0]);
  std::memcpy(&header.edges, bytes.data() + 1, 8);
  std::memcpy(&header.vertices, bytes.data() + 9, 8);
  if (directed > 1) fail("byte 0", fmt::format("value {} is neither 0 nor 1", directed));
  if (header.vertices < 1 || header.vertices > kMostVertices)
    fail("byte 9", fmt::format("the number of vertices, {}, is outside 1..{}",
                               static_cast<std::int64_t>(header.vertices), kMostVertices));
  header.directed = directed == 1;
  return header;
}

// Throws unless the file has just the bytes that the header promises.
void check_size(const GapHeader& header, std::uint64_t bytes, std::uint64_t an_edge,
                const std::string& file) {
  const std::uint64_t halves = header.directed ? 2 : 1;
  const std::uint64_t offsets = 8 * (header.vertices + 1);
  const std::uint64_t body = bytes - kHeaderBytes;
  if (header.edges <= body / an_edge && body == halves * (offsets + an_edge * header.edges)) return;
  throw InputError(
      file, "header",
      fmt::format("{} vertices and {} {}edges of {} bytes do not make a file of {} bytes",
                  header.vertices, static_cast<std::int64_t>(header.edges),
                  header.directed ? "directed " : "", an_edge, bytes),
      "get the whole file, and call it .sg without weights and .wsg with them");
}

}  // namespace

ParsedRows parse_gap(std::span<const std::byte> bytes, const std::string& file,
                     GapWeights weights) {
  const GapHeader header = read_gap_header(bytes, file);
  const std::uint64_t words = weights == GapWeights::int32 ? 2 : 1;  // of an edge
  check_size(header, bytes.size(), 4 * words, file);
  const std::uint64_t offsets = 8 * (header.vertices + 1);
  const std::uint64_t half = offsets + 4 * words * header.edges;
  const std::uint64_t begin = kHeaderBytes + (header.directed ? half : 0);

  Csr32 graph;
  graph.offsets = npy_integers<EdgeOffset>(
      raw_array(bytes, {kInt64, begin, header.vertices + 1}, file + ": offsets"),
      NpyRange{0, header.edges});
  require_rising(graph.offsets, header.edges, file);
  const NpyArray edges =
      raw_array(bytes, {kInt32, begin + offsets, words * header.edges}, file + ": edges");
  graph.neighbours = npy_integers<std::uint32_t>(edges, NpySlice{0, header.edges, words},
                                                 NpyRange{0, header.vertices - 1});
  if (weights == GapWeights::int32)
    graph.weights = npy_integers<float>(edges, NpySlice{1, header.edges, 2},
                                        NpyRange{Int32::min(), Int32::max()});
  ParsedRows parsed{with_sorted_rows(std::move(graph)), std::nullopt};
  if (!header.directed) {
    require_symmetric(parsed.graph, file);
    parsed.symmetric = true;
  }
  return parsed;
}

namespace {

// One pair of arrays.
template <VertexId V>
void write_rows(const Csr<V>& graph, AtomicFile& file, GapWeights weights) {
  file.write(std::as_bytes(graph.offsets.span()));
  if (weights == GapWeights::none && sizeof(V) == 4) {
    file.write(std::as_bytes(graph.neighbours.span()));
    return;
  }
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;  // edges
  Buffer<std::int32_t> piece(2 * std::min(kPiece, graph.edges()));
  for (EdgeOffset begin = 0; begin < graph.edges(); begin += kPiece) {
    const EdgeOffset end = std::min(begin + kPiece, graph.edges());
    std::size_t next = 0;
    for (EdgeOffset e = begin; e < end; ++e) {
      piece[next++] = static_cast<std::int32_t>(graph.neighbours[e]);
      if (weights == GapWeights::int32) piece[next++] = static_cast<std::int32_t>(graph.weight(e));
    }
    file.write(std::as_bytes(piece.span().first(next)));
  }
}

}  // namespace

void write_gap(const Dataset& dataset, AtomicFile& file, GapWeights weights) {
  require(dataset.vertices() <= kMostVertices,
          "{}: {} vertices are more than the {} that a file of the GAP suite can hold", file.path(),
          dataset.vertices(), kMostVertices);
  require(weights == GapWeights::int32 || !is_weighted(dataset.graph),
          "{}: .sg holds no weights; use .wsg or {}", file.path(), setting("no-weights"));
  require_whole_weights(dataset.graph, Int32::min(), Int32::max(), file.path());
  const std::byte directed{!dataset.symmetric};
  const std::uint64_t counts[] = {dataset.edges(), dataset.vertices()};
  file.write(std::span(&directed, 1));
  file.write(std::as_bytes(std::span(counts)));
  const auto write = [&](const auto& graph) { write_rows(graph, file, weights); };
  if (!dataset.symmetric) std::visit(write, out_rows(dataset));
  std::visit(write, dataset.graph);
}

}  // namespace plait
