// The texts of an OGB folder; whole folders are read through the program.
#include "plait/io/ogb.h"

#include "tests/io/parsed_graph.h"

namespace plait {
namespace {

std::vector<float> table(std::string_view text, std::uint64_t rows, std::uint64_t width) {
  const NpyMatrix matrix = parse_number_table(text, "x.csv");
  EXPECT_EQ(matrix.rows, rows);
  EXPECT_EQ(matrix.width, width);
  return {matrix.values.begin(), matrix.values.end()};
}

TEST(Ogb, TablesOfNumbers) {
  EXPECT_EQ(table("1,2.5\n-3e-1,0\n", 2, 2), (std::vector<float>{1, 2.5f, -.3f, 0}));
  EXPECT_EQ(table("1\r\n 2 \r\n\n3", 3, 1), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(table("1 , 2\n3,4", 2, 2), (std::vector<float>{1, 2, 3, 4}));
}

TEST(Ogb, TablesOfManyChunks) {
  std::string text;
  std::vector<float> expected;
  for (int i = 0; i < 40000; ++i) {
    text += std::to_string(i) + ",0." + std::to_string(i % 10) + ",-1\n";
    expected.insert(expected.end(),
                    {static_cast<float>(i), std::stof("0." + std::to_string(i % 10)), -1.0f});
  }
  with_threads([&] { EXPECT_TRUE(table(text, 40000, 3) == expected); });
}

TEST(Ogb, LinesOfNumbers) {
  EXPECT_EQ(parse_number_lines("3\n0\r\n\n 5 ", "x", 5), (std::vector<std::uint64_t>{3, 0, 5}));
  EXPECT_TRUE(parse_number_lines("\n", "x", 5).empty());
  expect_errors({{"6\n", "x.csv: line 1: the number '6' is outside 0..5"},
                 {"1\n2 3\n", "line 2: '2 3' is more than a number"},
                 {"-1\n", "'-1' is negative"}},
                [](const std::string& text) { parse_number_lines(text, "x.csv", 5); });
}

// UTF-8's mark of the byte order is no part of the text, also where nothing else stands.
TEST(Ogb, TheMarkOfTheByteOrderIsLeftOut) {
  EXPECT_EQ(table("\xef\xbb\xbf"
                  "1,2\n3,4\n",
                  2, 2),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(parse_number_lines("\xef\xbb\xbf"
                               "3\n4\n",
                               "x", 5),
            (std::vector<std::uint64_t>{3, 4}));
  expect_errors({{"\xef\xbb\xbf", "x.csv: line 1: there are no numbers"}},
                [](const std::string& text) { parse_number_table(text, "x.csv"); });
}

TEST(Ogb, DamagedTablesGiveErrorsOnly) {
  expect_damage_is_harmless("1,2.5,-7\n-3e-1,0,1e3\n", [](std::string_view text) {
    const NpyMatrix matrix = parse_number_table(text, "x");
    EXPECT_EQ(matrix.values.size(), matrix.rows * matrix.width);
  });
}

}  // namespace
}  // namespace plait
