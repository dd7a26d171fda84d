#include "plait/io/mgg.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/parallel.h"

namespace plait {
namespace {

using Int32 = std::numeric_limits<std::int32_t>;

// Returns "x_csr.bin" for "x_beg_pos.bin".
std::string sibling(const std::string& path, std::string_view what) {
  if (!path.ends_with(kMggEnding))
    throw UsageError(
        fmt::format("{}: MGG's graphs are files of the names NAME_beg_pos.bin, "
                    "NAME_csr.bin and NAME_weight.bin; give the first",
                    path));
  return fmt::format("{}_{}.bin", path.substr(0, path.size() - kMggEnding.size()), what);
}

}  // namespace

std::vector<std::string> files_of_graph(const std::string& path) {
  if (!path.ends_with(kMggEnding)) return {path};
  return {path, sibling(path, "csr"), sibling(path, "weight")};
}

namespace {

// Sets `edges` to the last offset, read as a number of this width. Returns whether the bytes of the
// neighbours are that many numbers of either width.
bool agree(const MggBytes& bytes, std::uint64_t width, std::uint64_t& edges) {
  if (bytes.offsets.size() < 2 * width || bytes.offsets.size() % width != 0) return false;
  edges = 0;
  std::memcpy(&edges, bytes.offsets.data() + bytes.offsets.size() - width, width);
  const std::uint64_t size = bytes.neighbours.size();
  return (size % 4 == 0 && edges == size / 4) || (size % 8 == 0 && edges == size / 8);
}

NpyArray integers(std::span<const std::byte> bytes, std::uint64_t count, const std::string& name) {
  const std::uint64_t width = count > 0 && bytes.size() / count == 8 ? 8 : 4;
  if (bytes.size() != width * count)
    throw InputError(
        name, "size",
        fmt::format("{} bytes are neither 4 nor 8 for each of {} edges", bytes.size(), count),
        "get all three files of the graph");
  return raw_array(bytes, {{'i', width}, 0, count}, name);
}

template <VertexId V>
AnyCsr read_rows(const MggBytes& bytes, const std::string& file, Array<EdgeOffset> offsets) {
  Csr<V> graph;
  const std::uint64_t edges = offsets.back();
  graph.neighbours = npy_integers<V>(integers(bytes.neighbours, edges, file + ": neighbours"),
                                     NpyRange{0, offsets.size() - 2});
  if (!bytes.weights.empty()) {
    const NpyArray weights = integers(bytes.weights, edges, file + ": weights");
    Buffer<float> values =
        npy_integers<float>(weights, NpyRange{std::numeric_limits<std::int64_t>::min()});
    if (std::any_of(values.begin(), values.end(), [](float w) { return w != 1; }))
      graph.weights = std::move(values);
  }
  graph.offsets = std::move(offsets);
  return with_sorted_rows(std::move(graph));
}

// Writes one number for each i below count, as T.
template <class T, class Number>
void write_numbers(const std::string& path, std::uint64_t count, Number number) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  AtomicFile file(path);
  Buffer<T> piece(std::min(kPiece, count));
  for (std::uint64_t begin = 0; begin < count; begin += kPiece) {
    const std::uint64_t size = std::min(kPiece, count - begin);
    for (std::uint64_t i = 0; i < size; ++i) piece[i] = static_cast<T>(number(begin + i));
    file.write(std::as_bytes(piece.span().first(size)));
  }
  file.commit();
}

}  // namespace

ParsedRows parse_mgg(const MggBytes& bytes, const std::string& file) {
  std::uint64_t edges = 0, width = 8;
  if (!agree(bytes, width, edges) && !agree(bytes, width = 4, edges))
    throw InputError(file, "last number",
                     fmt::format("as neither int64 nor int32 it is the number of edges in the {} "
                                 "bytes of neighbours",
                                 bytes.neighbours.size()),
                     "get all three files of the graph");
  const std::uint64_t count = bytes.offsets.size() / width;
  Array<EdgeOffset> offsets = npy_integers<EdgeOffset>(
      raw_array(bytes.offsets, {{'i', width}, 0, count}, file), NpyRange{0, edges});
  require_rising(offsets, edges, file);
  if (count - 1 <= kMaxVertices32)
    return {read_rows<std::uint32_t>(bytes, file, std::move(offsets)), std::nullopt};
  return {read_rows<std::uint64_t>(bytes, file, std::move(offsets)), std::nullopt};
}

ParsedRows read_mgg(const MappedFile& offsets) {
  const auto neighbours = MappedFile::open(sibling(offsets.path(), "csr"));
  MggBytes bytes{offsets.bytes(), neighbours->bytes(), {}};
  const std::string weight_path = sibling(offsets.path(), "weight");
  std::shared_ptr<const MappedFile> weights;
  if (access(weight_path.c_str(), F_OK) == 0) {
    weights = MappedFile::open(weight_path);
    bytes.weights = weights->bytes();
  }
  return parse_mgg(bytes, offsets.path());
}

void write_mgg(const Dataset& dataset, const std::string& path) {
  require_whole_weights(dataset.graph, Int32::min(), Int32::max(), path);
  std::visit(
      [&](const auto& graph) {
        write_numbers<std::int32_t>(sibling(path, "weight"), graph.edges(),
                                    [&](EdgeOffset e) { return graph.weight(e); });
        write_numbers<std::int64_t>(sibling(path, "csr"), graph.edges(),
                                    [&](EdgeOffset e) { return graph.neighbours[e]; });
        write_numbers<std::int64_t>(path, graph.offsets.size(),
                                    [&](std::uint64_t i) { return graph.offsets[i]; });
      },
      dataset.graph);
}

}  // namespace plait
