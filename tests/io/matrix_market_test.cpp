// The Matrix Market reader and writer. The oracle is the list of entries from which a text is made.
#include "plait/io/matrix_market.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <tuple>

#include "plait/base/error.h"
#include "plait/graph/build.h"

namespace plait {
namespace {

using Edge = std::tuple<std::uint64_t, std::uint64_t, float>;  // source, target, weight

struct Read {
  std::uint64_t vertices = 0;
  bool wide = false;
  bool weighted = false;
  std::vector<Edge> edges;
};

Read read(const std::string& text, std::uint64_t vertices = 0) {
  Read result;
  std::visit(
      [&](const auto& list) {
        result = {list.vertices, sizeof(list.source[0]) == 8, !list.weight.empty(), {}};
        for (std::size_t e = 0; e < list.edges(); ++e)
          result.edges.emplace_back(list.source[e], list.target[e],
                                    result.weighted ? list.weight[e] : 1.0f);
      },
      parse_matrix_market(text, "x.mtx", vertices));
  return result;
}

std::string error_of(const std::string& text, std::uint64_t vertices = 0) {
  try {
    parse_matrix_market(text, "x.mtx", vertices);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const std::string kGeneral = "%%MatrixMarket matrix coordinate pattern general\n";
const std::string kSymmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
const std::string kReal = "%%MatrixMarket matrix coordinate real general\n";
const std::string kInteger = "%%MatrixMarket matrix coordinate integer general\n";

TEST(MatrixMarket, EntryIsTargetThenSourceCountedFromOne) {
  const Read result = read(kGeneral + "% a comment\n\n3 3 2\n1 2\n3 1\n");
  EXPECT_EQ(result.vertices, 3u);
  EXPECT_FALSE(result.weighted);
  EXPECT_EQ(result.edges, (std::vector<Edge>{{1, 0, 1}, {0, 2, 1}}));
}

TEST(MatrixMarket, SymmetricEntriesAreMirroredOffTheDiagonal) {
  const Read result = read(kSymmetric + "3 3 3\n2 1 0.5\n2 2 -4\n3 1 1e2\n");
  EXPECT_TRUE(result.weighted);
  EXPECT_EQ(result.edges,
            (std::vector<Edge>{{0, 1, .5f}, {1, 0, .5f}, {1, 1, -4}, {0, 2, 100}, {2, 0, 100}}));
}

TEST(MatrixMarket, LooseFormattingIsRead) {
  const std::vector<Edge> expected{{1, 0, 1}, {0, 1, 1}};
  EXPECT_EQ(read("%%MATRIXMARKET  Matrix\tCOORDINATE pattern General \r\n%\r\n2 2 2\r\n1 2\r\n2 "
                 "1\r\n")
                .edges,
            expected);
  EXPECT_EQ(read(kGeneral + "  2\t2  2 \n\n \t\n1\t2\n\n  2   1  ").edges, expected);
  EXPECT_EQ(read(kGeneral + "2 2 2\n0001 00000000000000000000000002\n2 1").edges, expected);
  EXPECT_EQ(read(kGeneral + "2 2 0").edges.size(), 0u);
}

TEST(MatrixMarket, Values) {
  const Read ones = read(kReal + "2 2 2\n1 2 1\n2 1 1.0\n");
  EXPECT_TRUE(ones.weighted) << "a real file of ones stays weighted";
  const Read real = read(kReal + "1 1 6\n1 1 +2.5\n1 1 -1e-3\n1 1 1e-60\n1 1 .5\n1 1 3.\n1 1 1E2");
  std::vector<float> weights;
  for (const auto& [source, target, weight] : real.edges) weights.push_back(weight);
  EXPECT_EQ(weights, (std::vector<float>{2.5f, -1e-3f, 0, .5f, 3, 100}));
  const Read integer = read(kInteger + "1 1 3\n1 1 -7\n1 1 +3\n1 1 16777216\n");
  EXPECT_EQ(integer.edges, (std::vector<Edge>{{0, 0, -7}, {0, 0, 3}, {0, 0, 16777216}}));
}

TEST(MatrixMarket, WideIdsWhereTheyDoNotFitIn32Bits) {
  const std::string text = kGeneral + "5000000000 5000000000 1\n5000000000 4294967296\n";
  const Read result = read(text, 5000000000u);
  EXPECT_TRUE(result.wide);
  EXPECT_EQ(result.vertices, 5000000000u);
  EXPECT_EQ(result.edges, (std::vector<Edge>{{4294967295u, 4999999999u, 1}}));
  EXPECT_FALSE(read(kGeneral + "4294967295 4294967295 1\n1 4294967295\n", 4294967295u).wide);
  EXPECT_TRUE(read(kGeneral + "4294967296 4294967296 1\n1 4294967296\n", 4294967296u).wide);
}

TEST(MatrixMarket, ManyMoreVerticesThanEdgesCanNameMustBeTold) {
  const std::string text = kGeneral + "% c\n400000000 400000000 1\n1 2\n";
  EXPECT_EQ(error_of(text),
            "x.mtx: line 3: 400000000 vertices are far more than the 2 that 1 edges can name; if "
            "the number is right, give vertices 400000000");
  EXPECT_EQ(read(text, 400000000).vertices, 400000000u);
  EXPECT_NE(error_of(text, 3).find("400000000 vertices, where vertices says 3; leave out"),
            std::string::npos);
  EXPECT_EQ(read(kGeneral + "4194320 4194320 1\n1 2\n").vertices, 4194320u) << "the bound";
  EXPECT_NE(error_of(kGeneral + "4194321 4194321 1\n1 2\n"), "no error");
}

// A text of many chunks, with line ends and gaps of all kinds, against the entries that it was made
// from.
struct Generated {
  std::string text;
  std::vector<Edge> edges;
};

Generated generate(std::uint32_t seed, std::uint64_t vertices, std::size_t entries, bool symmetric,
                   bool weighted) {
  std::mt19937 random(seed);
  const auto pick = [&](std::uint64_t bound) { return random() % bound; };
  Generated made;
  std::ostringstream text;
  text.precision(9);
  for (std::size_t i = 0; i < entries; ++i) {
    std::uint64_t row = pick(vertices), column = pick(vertices);
    if (symmetric && column > row) std::swap(row, column);
    const float weight = weighted ? std::ldexp(float(pick(1 << 24)) - 8e6f, int(pick(60)) - 40) : 1;
    made.edges.emplace_back(column, row, weight);
    if (symmetric && column != row) made.edges.emplace_back(row, column, weight);
    if (pick(8) == 0) text << (pick(2) ? "\n" : "  \t\r\n");
    text << (pick(8) ? "" : " ") << row + 1 << (pick(2) ? " " : "\t  ") << column + 1;
    if (weighted) text << ' ' << weight;
    text << (pick(8) ? "\n" : pick(2) ? "\r\n" : "  \n");
  }
  made.text = std::string("%%MatrixMarket matrix coordinate ") + (weighted ? "real" : "pattern") +
              (symmetric ? " symmetric\n" : " general\n") + std::to_string(vertices) + ' ' +
              std::to_string(vertices) + ' ' + std::to_string(entries) + '\n' + text.str();
  return made;
}

TEST(MatrixMarket, RandomFiles) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const std::uint64_t vertices = std::uint64_t{1} << (seed % 31);
    const Generated made = generate(seed, vertices, seed * 5 % 300, seed % 2, seed / 2 % 2);
    const Read result = read(made.text, vertices);
    ASSERT_EQ(result.edges, made.edges) << "seed " << seed;
    ASSERT_EQ(result.vertices, vertices);
  }
}

TEST(MatrixMarket, ManyChunksAndAnyNumberOfThreads) {
  const int threads = omp_get_max_threads();
  for (const bool symmetric : {false, true}) {
    const Generated made = generate(7, 3000000, 60000, symmetric, true);
    ASSERT_GT(made.text.size(), std::size_t{10} << 16);
    for (const int count : {1, 2, 5}) {
      omp_set_num_threads(count);
      EXPECT_EQ(read(made.text).edges, made.edges);
    }
  }
  omp_set_num_threads(threads);
}

TEST(MatrixMarket, MemoryIsBoundedByTheFile) {
  const auto bytes = [](const Read& r) {
    return r.edges.size() * ((r.wide ? 16 : 8) + (r.weighted ? 4 : 0));
  };
  std::string shortest = kGeneral + "9 9 500000\n",
              wide = kGeneral + "9000000000 9000000000 500000\n";
  for (int i = 0; i < 500000; ++i) (shortest += "1 1\n"), (wide += "1 1\n");
  EXPECT_LE(bytes(read(shortest)), 2 * shortest.size() + (1 << 20));
  EXPECT_NE(error_of(wide).find("number the vertices without gaps"), std::string::npos);
}

TEST(MatrixMarket, ErrorsSayPlaceValueRangeAndRemedy) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "x.mtx: line 1: the banner '' is not"},
      {"1 2\n", "x.mtx: line 1: the banner '1 2' is not"},
      {"%%MatrixMarket matrix coordinate complex general\n1 1 0\n",
       "field 'complex' is not supported"},
      {"%%MatrixMarket matrix array real general\n1 1\n", "format 'array' is not supported"},
      {"%%MatrixMarket matrix coordinate real hermitian\n",
       "symmetry 'hermitian' is not supported"},
      {"%%MatrixMarket matrix coordinate real skew-symmetric\n", "symmetry 'skew-symmetric'"},
      {"%%MatrixMarket vector coordinate real general\n", "object 'vector'"},
      {kGeneral, "line 2: the size line is missing"},
      {kGeneral + "% only\n", "line 3: the size line is missing"},
      {kGeneral + "2 3 1\n1 1\n", "line 2: a matrix of 2 rows and 3 columns is not a graph"},
      {kGeneral + "0 0 0\n", "the number of rows '0' is outside 1.."},
      {kGeneral + "-2 -2 0\n", "the number of rows '-2' is negative, outside 1.."},
      {kGeneral + "2 2 -1\n", "the number of entries '-1' is negative, outside 0.."},
      {kGeneral + "2 2 99999999999999999999999\n", "entries '99999999999999999999999' is outside"},
      {kGeneral + "99999999999999999 99999999999999999 0\n", "rows '99999999999999999' is outside"},
      {kGeneral + "2 2\n1 1\n", "the number of entries is missing in '2 2'"},
      {kGeneral + "2 2 1 5\n1 1\n", "has more than 3 numbers"},
      {kGeneral + "2.0 2 1\n", "the number of rows '2.0' is not a whole number"},
      {kGeneral + "5 5 7\n1 1\n1 2\n\n1 3\n1 4\n1 5\n",
       "line 2: the header promises 7 entries, but the file holds 5; correct"},
      {kGeneral + "5 5 1\n1 1\n1 2\n", "promises 1 entries, but the file holds 2"},
      {kGeneral + "5 5 1000000000000\n1 1\n",
       "promises 1000000000000 entries, but the file holds 1"},
      {kGeneral + "% c\n\n5 5 2\n1 1\n6 1\n", "line 6: row '6' is outside 1..5; correct the line"},
      {kGeneral + "5 5 1\n1 0\n", "column '0' is outside 1..5"},
      {kGeneral + "5 5 1\n1 -3\n", "line 3: column '-3' is negative, outside 1..5"},
      {kGeneral + "5 5 1\n1 x\n", "column 'x' is not a whole number in 1..5"},
      {kGeneral + "5 5 1\n1\n", "column is missing in '1'; give a whole number in 1..5"},
      {kGeneral + "5 5 1\n1,2\n", "column is missing in '1,2'"},
      {kGeneral + "5 5 1\n1.5 2\n", "row '1.5' is not a whole number"},
      {kGeneral + "5 5 1\n18446744073709551617 2\n", "row '18446744073709551617' is outside"},
      {kGeneral + "5 5 1\n1 2 0.5\n", "'1 2 0.5' has more than the 2 numbers of an entry"},
      {kReal + "5 5 1\n1 2\n", "line 3: the weight is missing in '1 2'"},
      {kReal + "5 5 1\n1 2 nan\n", "weight 'nan' is not a finite number"},
      {kReal + "5 5 1\n1 2 -inf\n", "weight '-inf' is not a finite number"},
      {kReal + "5 5 1\n1 2 1e39\n", "weight '1e39' is not a finite number in -3.4e38..3.4e38"},
      {kReal + "5 5 1\n1 2 3x\n", "weight '3x' is not"},
      {kReal + "5 5 1\n1 2 3 4\n", "has more than the 3 numbers"},
      {kInteger + "5 5 1\n1 2 0.5\n", "of an integer file is not whole"},
      {kSymmetric + "5 5 1\n1 2 1\n", "line 3: entry (1, 2) of a symmetric file is above"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(expected), std::string::npos) << "expected: " << expected << "\n" << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(MatrixMarket, TheFirstOfManyErrorsIsReported) {
  std::string text = kGeneral + "9 9 100000\n";
  for (int i = 0; i < 100000; ++i) text += i == 40000 ? "77 1\n" : i > 40000 ? "1 x\n" : "1 1\n";
  for (int repeat = 0; repeat < 5; ++repeat)
    EXPECT_EQ(error_of(text), "x.mtx: line 40003: row '77' is outside 1..9; correct the line");
}

TEST(MatrixMarket, DamagedFilesGiveErrorsOnly) {
  const std::string whole = kSymmetric + "% c\n4 4 3\n2 1 0.5\r\n3 3 -1e-3\n\n4 1 12345678.5";
  const auto parses = [](const std::string& text) {
    try {
      parse_matrix_market(text, "x.mtx");
      return true;
    } catch (const InputError&) {
      return false;
    }
  };
  ASSERT_TRUE(parses(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const bool can_be_whole = size >= whole.size() - 9;  // only digits of the last value are lost
    EXPECT_TRUE(!parses(whole.substr(0, size)) || can_be_whole) << size;
  }
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    parses(flipped);  // may be right or wrong; anything but InputError fails the test
  }
}

class MatrixMarketFile : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "plait_mtx_" + std::to_string(getpid()) + ".mtx";
  void TearDown() override { std::filesystem::remove(path_); }

  std::string written(const Dataset& dataset) {
    AtomicFile file(path_);
    write_matrix_market(dataset, file);
    file.commit();
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
};

TEST_F(MatrixMarketFile, WrittenByRows) {
  Dataset dataset;
  dataset.graph = build_csr(parse_matrix_market(kGeneral + "3 3 3\n3 1\n1 3\n1 2\n", "x"));
  EXPECT_EQ(written(dataset), kGeneral + "3 3 3\n1 2\n1 3\n3 1\n");
  dataset.graph = build_csr(parse_matrix_market(kReal + "2 2 2\n1 2 0.1\n2 1 1e-30\n", "x"));
  EXPECT_EQ(written(dataset), kReal + "2 2 2\n1 2 0.1\n2 1 1e-30\n");
}

TEST_F(MatrixMarketFile, RoundTripKeepsEveryBitOfTheWeights) {
  const Generated made = generate(3, 9000, 30000, false, true);
  Dataset dataset;
  dataset.graph = build_csr(parse_matrix_market(made.text, "x"));
  const Csr32& first = std::get<Csr32>(dataset.graph);
  const AnyCsr again = build_csr(parse_matrix_market(written(dataset), "x"));
  const Csr32& second = std::get<Csr32>(again);
  EXPECT_TRUE(std::ranges::equal(first.offsets, second.offsets));
  EXPECT_TRUE(std::ranges::equal(first.neighbours, second.neighbours));
  EXPECT_TRUE(std::ranges::equal(first.weights, second.weights));
}

}  // namespace
}  // namespace plait
