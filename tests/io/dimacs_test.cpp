// The reader of DIMACS files. The oracle is the list of arcs that a text is made from. Writing is
// tested through the program, against a reader in Python.
#include "plait/io/dimacs.h"

#include "tests/io/parsed_graph.h"

namespace plait {
namespace {

PlainGraph read(std::string_view text) { return plain(parse_dimacs(text, "x.gr")); }

TEST(Dimacs, AnArcIsSourceTargetWeight) {
  const PlainGraph expected{3, true, {{1, 0, 5}, {2, 1, -7}}};
  for (const char* text : {
           "p sp 3 2\na 1 2 5\na 2 3 -7\n",
           "c words\nc\n\np\tsp  3 2 \r\nc 1 2 3\r\n a  1\t2 5\r\n\r\na 2 3 -7",
       })
    EXPECT_EQ(read(text), expected) << text;
  EXPECT_EQ(read("p sp 2 1\na 2 2 0.5\n"), (PlainGraph{2, true, {{1, 1, .5f}}}));
  EXPECT_EQ(read("p sp 4 0\n").vertices, 4u);
}

TEST(Dimacs, ManyChunksAndAnyNumberOfThreads) {
  const PlainGraph graph = random_plain(5000, 50000, true);
  std::string text = "c\np sp 5000 50000\n";
  std::size_t line = 0;
  for (const auto& [row, neighbour, weight] : graph.entries) {
    text += "a " + std::to_string(neighbour + 1) + " " + std::to_string(row + 1) + " " +
            std::to_string(static_cast<int>(weight)) + "\n";
    if (++line % 50 == 0) text += "c a 1 2 3\n";
  }
  with_threads([&] { EXPECT_EQ(read(text), graph); });
}

TEST(Dimacs, DamagedFilesGiveErrorsOnly) {
  expect_damage_is_harmless("c c\np sp 3 3\na 1 2 5\nc\na 3 1 -2\na 2 2 1e1\n", read);
}

TEST(Dimacs, ErrorsSayPlaceValueRangeAndRemedy) {
  expect_errors(
      {
          {"p sp 2 2\na 1 2 3\n",
           "x.gr: line 1: the header promises 2 arcs, but the file holds 1; "},
          {"p sp 2 1\nc\na 0 2 3\n", "x.gr: line 3: source '0' is outside 1..2; "},
          {"p sp 2 1\na 1 2 x\n", "line 2: weight 'x' is not a finite number"},
          {"p sp 2 1\na1 2 3\n", "line 2: 'a1 2 3' is not a line of c, p or a"},
          {"\x01\x02", "line 1: '\?\?' is not a line of c, p or a"},
          {"p cut 2 1\n", "is not a shortest path problem"},
          {"p sp 400000000 1\na 1 2 3\n",
           "line 1: 400000000 vertices are far more than the 2 that 1 edges can name; if the "
           "number "
           "is right, give vertices 400000000"},
          {"p sp 2\n", "the number of arcs is missing"},
          {"p sp 2 1 1\n", "has more than 2 numbers"},
      },
      read);
}

}  // namespace
}  // namespace plait
