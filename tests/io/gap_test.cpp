// The GAP suite's serialised graphs. The oracle writes them number by number; writing is tested
// through the program, against a reader in Python.
#include "plait/io/gap.h"

#include <cstring>

#include "tests/io/parsed_graph.h"

namespace plait {
namespace {

PlainGraph read(std::span<const std::byte> bytes, GapWeights weights) {
  return plain(parse_gap(bytes, "x.sg", weights).graph);
}

template <class T>
void put(std::string& bytes, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof value);
  bytes.append(raw, sizeof raw);
}

// Writes the rows of `graph`, once or after rows of its edges turned round.
std::string file_of(const PlainGraph& graph, bool directed) {
  std::string bytes;
  put(bytes, directed);
  put(bytes, std::int64_t(graph.entries.size()));
  put(bytes, std::int64_t(graph.vertices));
  for (const bool turned : {true, false}) {
    if (turned && !directed) continue;
    std::vector<Entry> entries = graph.entries;
    for (auto& [row, neighbour, weight] : entries)
      if (turned) std::swap(row, neighbour);
    std::sort(entries.begin(), entries.end());
    std::vector<std::int64_t> offsets(graph.vertices + 1);
    for (const auto& [row, neighbour, weight] : entries) ++offsets[row + 1];
    for (std::size_t i = 0; i < graph.vertices; ++i) offsets[i + 1] += offsets[i];
    for (const std::int64_t offset : offsets) put(bytes, offset);
    for (const auto& [row, neighbour, weight] : entries) {
      put(bytes, static_cast<std::int32_t>(neighbour));
      if (graph.weighted) put(bytes, static_cast<std::int32_t>(weight));
    }
  }
  return bytes;
}

TEST(Gap, DirectedGraphsAreTheirIncomingEdges) {
  for (const bool weighted : {false, true}) {
    const PlainGraph graph = random_plain(500, 3000, weighted);
    EXPECT_EQ(read(to_bytes(file_of(graph, true)).span(), GapWeights{weighted}), graph);
  }
}

TEST(Gap, UndirectedGraphsMustBeSymmetric) {
  const PlainGraph graph{3, true, {{0, 1, 4}, {0, 2, -7}, {1, 0, 4}, {2, 0, -7}, {2, 2, 0}}};
  const auto bytes = to_bytes(file_of(graph, false));
  const ParsedRows rows = parse_gap(bytes.span(), "x", GapWeights::int32);
  EXPECT_EQ(plain(rows.graph), graph);
  EXPECT_EQ(rows.symmetric, true);
  PlainGraph wrong = graph;
  std::get<2>(wrong.entries[3]) = 7;
  EXPECT_EQ(error_of([&] {
              read(to_bytes(file_of(wrong, false)).span(), GapWeights::int32);
            }).find("x.sg: vertex 0: its edge to vertex 2"),
            0u);
}

TEST(Gap, DamagedFilesGiveErrorsOnly) {
  for (const bool directed : {false, true}) {
    const PlainGraph graph{3, false, {{0, 1, 1}, {1, 0, 1}, {1, 2, 1}, {2, 1, 1}}};
    const auto bytes = to_bytes(file_of(graph, directed));
    const auto reader = [](const Buffer<std::byte>& b) { read(b.span(), GapWeights::none); };
    expect_every_truncation_refused(bytes.span(), reader);
    EXPECT_GT(count_refused_flips(bytes.span(), reader), 8 * bytes.size() / 3);
  }
}

TEST(Gap, AWeightedFileUnderTheOtherNameIsRefused) {
  const auto weighted = to_bytes(file_of(random_plain(20, 50, true), true));
  const auto plain = to_bytes(file_of(random_plain(20, 50, false), true));
  EXPECT_THROW(read(weighted.span(), GapWeights::none), InputError);
  EXPECT_THROW(read(plain.span(), GapWeights::int32), InputError);
}

}  // namespace
}  // namespace plait
