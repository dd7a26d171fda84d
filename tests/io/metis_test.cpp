// The reader of METIS files. The oracle is the list of entries that a text is made from. Writing is
// tested through the program, against a reader in Python.
#include "plait/io/metis.h"

#include "tests/io/parsed_graph.h"

namespace plait {
namespace {

PlainGraph read(std::string_view text) { return plain(parse_metis(text, "x.graph").rows.graph); }

TEST(Metis, ALineIsTheNeighboursOfAVertex) {
  const PlainGraph path{3, false, {{0, 1, 1}, {1, 0, 1}, {1, 2, 1}, {2, 1, 1}}};
  for (const char* text : {
           "3 2\n2\n1 3\n2\n",
           "3 2 0\n2\n1 3\n2",
           "% c\n  3\t2 000 1 \r\n 2 \r\n% c\n3\t1\r\n2\r\n",
           "3 2 10\n7 2\n7 1 3\n7 2\n",
           "3 2 100\n7 2\n7 1 3\n7 2\n",
           "3 2 110 2\n7 8 9 2\n7 8 9 1 3\n7 8 9 2\n\n",
       })
    EXPECT_EQ(read(text), path) << text;
  EXPECT_EQ(read("2 1 1\n2 0.5\n1 5e-1\n"), (PlainGraph{2, true, {{0, 1, .5f}, {1, 0, .5f}}}));
  EXPECT_EQ(read("4 0\n\n\n\n\n"), (PlainGraph{4, false, {}}));
  EXPECT_EQ(read("1 0\n"), (PlainGraph{1, false, {}}));
}

TEST(Metis, WarnsOfNumbersOfVertices) {
  EXPECT_EQ(parse_metis("2 1\n2\n1\n", "x").warnings.size(), 0u);
  EXPECT_EQ(parse_metis("2 1 10\n5 2\n5 1\n", "x").warnings.size(), 1u);
}

struct Style {
  bool weighted = false;
  bool comments = false;
  std::string numbers = {};  // of a vertex
  std::string format = {};
};

std::string text_of(const PlainGraph& graph, const Style& style) {
  std::vector<std::string> lines(graph.vertices, style.numbers);
  for (const auto& [row, neighbour, weight] : graph.entries) {
    lines[row] += " " + std::to_string(neighbour + 1);
    if (style.weighted) lines[row] += " " + std::to_string(static_cast<int>(weight));
  }
  std::string text = std::to_string(graph.vertices) + " " +
                     std::to_string(graph.entries.size() / 2) + " " + style.format + "\n";
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += lines[i] + (style.comments && i % 100 == 3 ? "\n% 1 2 3\n" : "\n");
  return text;
}

// Makes every edge in both directions, of a weight that depends on its ends alone.
PlainGraph undirected(PlainGraph graph) {
  PlainGraph both{graph.vertices, graph.weighted, {}};
  for (const auto& [i, j, w] : graph.entries) {
    if (i == j) continue;
    const float weight = graph.weighted ? static_cast<float>((i + j) % 50 + 1) : 1.0f;
    both.entries.emplace_back(i, j, weight);
    both.entries.emplace_back(j, i, weight);
  }
  return sorted(both);
}

TEST(Metis, ManyChunksAndAnyNumberOfThreads) {
  const PlainGraph plain = undirected(random_plain(20000, 60000, false));
  const PlainGraph weighted = undirected(random_plain(9999, 40000, true));
  with_threads([&] {
    EXPECT_EQ(read(text_of(plain, {})), plain);
    EXPECT_EQ(read(text_of(plain, {.comments = true})), plain);
    EXPECT_EQ(read(text_of(plain, {.numbers = "3 4 ", .format = "10 2"})), plain);
    EXPECT_EQ(read(text_of(weighted, {.weighted = true, .format = "1"})), weighted);
    EXPECT_EQ(read(text_of(weighted, {true, true, "9 5 ", "111"})), weighted);
  });
}

TEST(Metis, DamagedFilesGiveErrorsOnly) {
  for (const char* text :
       {"% c\n3 2\n2\n1 3\n2\n", "3 2 111 2\n1 1 1 2 5\n1 1 1 1 5 3 6\n1 1 1 2 6"})
    expect_damage_is_harmless(text, read);
}

TEST(Metis, CountsAreChecked) {
  expect_errors(
      {
          {"3 1\n2 3\n\n\n",
           "x.graph: vertex 0: its edge to vertex 1 (counted from 0) has no reverse"},
          {"3 2\n2\n",
           "x.graph: line 1: the header promises 3 vertices, but the file holds lines for 1"},
          {"3 3\n2\n1 3\n2\n", "line 1: the header promises 3 edges, but the lines hold 4 ends"},
          {"2 1\n2\n1\n2\n", "line 4: line 3 of a vertex, but the header promises 2"},
          {"72057594037927936 0\n", "lines for 0"},
          {"2 1 1\n2\n1\n", "line 2: '2' has 1 numbers, but needs 0 for the vertex and 2 per edge"},
      },
      read);
}

}  // namespace
}  // namespace plait
