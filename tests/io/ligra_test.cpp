// The reader of Ligra's adjacency text. The oracle is the list of entries that a text is made from.
// Writing is tested through the program, against a reader in Python.
#include "plait/io/ligra.h"

#include "tests/io/parsed_graph.h"

namespace plait {
namespace {

PlainGraph read(std::string_view text) { return plain(parse_ligra(text, "x.adj")); }

TEST(Ligra, RowsAreTheTargetsOfAVertex) {
  const PlainGraph expected{3, false, {{0, 1, 1}, {0, 2, 1}, {2, 0, 1}}};
  for (const char* text : {
           "AdjacencyGraph\n3\n3\n0\n2\n2\n1\n2\n0\n",
           " \nAdjacencyGraph 3 3 0 2 2 1 2 0",
           "AdjacencyGraph\r\n3\r\n3\r\n\r\n0\t2  2\r\n1 2 0\r\n \r\n",
       })
    EXPECT_EQ(read(text), expected) << text;
  EXPECT_EQ(read("WeightedAdjacencyGraph\n2\n2\n0\n1\n1\n0\n7\n-0.5\n"),
            (PlainGraph{2, true, {{0, 1, 7}, {1, 0, -.5f}}}));
  EXPECT_EQ(read("AdjacencyGraph\n4\n0\n0\n0\n0\n0\n"), (PlainGraph{4, false, {}}));
}

std::string text_of(const PlainGraph& graph, char separator) {
  std::vector<std::size_t> offsets(graph.vertices + 1);
  for (const auto& [row, neighbour, weight] : graph.entries) ++offsets[row + 1];
  for (std::size_t i = 0; i < graph.vertices; ++i) offsets[i + 1] += offsets[i];
  std::string text = graph.weighted ? "WeightedAdjacencyGraph\n" : "AdjacencyGraph\n";
  const auto add = [&](std::size_t number) { text += std::to_string(number) + separator; };
  add(graph.vertices);
  add(graph.entries.size());
  for (std::size_t i = 0; i < graph.vertices; ++i) add(offsets[i]);
  for (const auto& [row, neighbour, weight] : graph.entries) add(neighbour);
  if (graph.weighted)
    for (const auto& [row, neighbour, weight] : graph.entries)
      add(static_cast<std::size_t>(weight));
  return text;
}

TEST(Ligra, ManyChunksAndAnyNumberOfThreads) {
  const PlainGraph plain = random_plain(30000, 70000, false);
  const PlainGraph weighted = random_plain(3000, 60000, true);
  with_threads([&] {
    EXPECT_EQ(read(text_of(plain, '\n')), plain);
    EXPECT_EQ(read(text_of(weighted, '\n')), weighted);
    EXPECT_EQ(read(text_of(weighted, ' ')), weighted) << "one line, which is one chunk";
  });
}

TEST(Ligra, ACommaIsNoSeparator) {
  expect_errors({{"AdjacencyGraph\n2\n1\n0\n1\n1,\n", "x.adj: line 6: '1,' is not made of numbers"},
                 {"AdjacencyGraph\n2\n2\n0,0\n1\n1\n1\n", "line 4: '0,0' is not"}},
                read);
}

TEST(Ligra, DamagedFilesGiveErrorsOnly) {
  expect_damage_is_harmless("WeightedAdjacencyGraph\n2\n2\n0\n1\n1\n0\n7\n-5\n", read);
}

}  // namespace
}  // namespace plait
