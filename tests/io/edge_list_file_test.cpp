// The reader and writer of edge lists. The oracle numbers ids through a std::map.
#include "plait/io/edge_list_file.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <tuple>

#include "plait/base/error.h"
#include "plait/graph/build.h"

namespace plait {
namespace {

using Edge = std::tuple<std::uint64_t, std::uint64_t, float>;  // source, target, weight
using Ids = std::vector<std::uint64_t>;

struct Read {
  std::uint64_t vertices = 0;
  bool weighted = false;
  std::vector<Edge> edges;
  Ids original_ids;
  std::uint64_t bytes = 0;  // of the result

  bool operator==(const Read&) const = default;
};

Read read(const std::string& text) {
  const ParsedEdgeList parsed = parse_edge_list(text, "x.txt");
  Read result;
  std::visit(
      [&](const auto& list) {
        result.vertices = list.vertices;
        result.weighted = !list.weight.empty();
        for (std::size_t e = 0; e < list.edges(); ++e)
          result.edges.emplace_back(list.source[e], list.target[e],
                                    result.weighted ? list.weight[e] : 1.0f);
        result.bytes = list.edges() * 2 * sizeof(list.source[0]) + 4 * list.weight.size();
      },
      parsed.edges);
  result.original_ids.assign(parsed.original_ids.begin(), parsed.original_ids.end());
  result.bytes += 8 * parsed.original_ids.size();
  return result;
}

std::string error_of(const std::string& text) {
  try {
    parse_edge_list(text, "x.txt");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(EdgeListFile, LineIsSourceThenTarget) {
  const Read result = read("# SNAP\n# FromNodeId\tToNodeId\n0\t2\n1\t0\n");
  EXPECT_EQ(result.vertices, 3u);
  EXPECT_FALSE(result.weighted);
  EXPECT_EQ(result.edges, (std::vector<Edge>{{0, 2, 1}, {1, 0, 1}}));
  EXPECT_TRUE(result.original_ids.empty());
}

TEST(EdgeListFile, LooseFormattingIsRead) {
  const std::vector<Edge> expected{{0, 1, 1}, {1, 0, 1}};
  for (const char* text : {
           "0 1\n1 0",
           "0,1\r\n1,0\r\n",
           "source,target\n0,1\n1,0\n",
           "% comment\n\nFrom To\n0\t1\n# between\n1\t0\n\n",
           "  0 ,  1  \n\t1,0\t\n",
           "\n\n0 00001\n1 0\n#",
           "0 1 {}\n1 0 {}\n",
           "0,1,{}\n1 0\n",
       })
    EXPECT_EQ(read(text).edges, expected) << text;
}

TEST(EdgeListFile, WeightsInAThirdColumn) {
  const Read result = read("u,v,w\n0,1,0.5\n1,0,-2e-3\n0,0,+3\n");
  EXPECT_TRUE(result.weighted);
  EXPECT_EQ(result.edges, (std::vector<Edge>{{0, 1, .5f}, {1, 0, -2e-3f}, {0, 0, 3}}));
  EXPECT_TRUE(read("0 0 1\n").weighted) << "weights of 1 are weights";
}

TEST(EdgeListFile, IdsAreNumberedInAscendingOrder) {
  const Read gaps = read("7 3\n3 100\n");
  EXPECT_EQ(gaps.edges, (std::vector<Edge>{{1, 0, 1}, {0, 2, 1}}));
  EXPECT_EQ(gaps.original_ids, (Ids{3, 7, 100}));
  const Read huge = read("18446744073709551615 0\n4294967295 4294967296\n0 4294967294\n");
  EXPECT_EQ(huge.original_ids,
            (Ids{0, 4294967294u, 4294967295u, 4294967296u, 18446744073709551615u}));
  EXPECT_EQ(huge.edges, (std::vector<Edge>{{4, 0, 1}, {2, 3, 1}, {0, 1, 1}}));
  EXPECT_EQ(read("5 5\n").original_ids, (Ids{5}));
  EXPECT_TRUE(read("0 0\n").original_ids.empty());
}

struct Generated {
  std::string text;
  Read expected;
};

// `draw` returns ids.
template <class Draw>
Generated generate(std::size_t edges, bool weighted, Draw draw) {
  std::mt19937 random(static_cast<std::uint32_t>(edges));
  std::vector<Edge> raw;
  std::map<std::uint64_t, std::uint64_t> number;
  std::ostringstream text;
  text.precision(9);
  for (std::size_t i = 0; i < edges; ++i) {
    const std::uint64_t source = draw(), target = draw();
    const auto weight = weighted ? static_cast<float>(random() % 4096) / 64 - 8 : 1.0f;
    raw.emplace_back(source, target, weight);
    number[source] = number[target] = 0;
    if (random() % 16 == 0) text << (random() % 2 ? "\r\n" : "# 1 2 3 4\n");
    const char separator = "\t, "[random() % 3];
    text << source << separator << target;
    if (weighted) text << separator << weight;
    text << (random() % 4 ? "\n" : " \r\n");
  }
  Generated made{text.str(), {number.size(), weighted, {}, {}, 0}};
  bool contiguous = true;
  for (auto& [id, place] : number) {
    place = made.expected.original_ids.size();
    contiguous = contiguous && id == place;
    made.expected.original_ids.push_back(id);
  }
  if (contiguous) made.expected.original_ids.clear();
  for (const auto& [source, target, weight] : raw)
    made.expected.edges.emplace_back(number[source], number[target], weight);
  return made;
}

void expect_read(const Generated& made) {
  Read result = read(made.text);
  EXPECT_LE(result.bytes, 2 * made.text.size() + (1 << 20));
  result.bytes = 0;
  EXPECT_TRUE(result == made.expected);
}

TEST(EdgeListFile, RandomFilesOfAllKindsOfIds) {
  std::mt19937_64 random(5);
  const std::vector<std::uint64_t> pool{0, 9, 1u << 31, ~std::uint64_t{0} >> 1, ~std::uint64_t{0}};
  for (std::size_t edges = 1; edges < 400; edges = edges * 3 / 2 + 1) {
    const bool weighted = edges % 2;
    expect_read(generate(edges, weighted, [&] { return random() % 10; }));
    expect_read(generate(edges, weighted, [&] { return random() % 100000; }));
    expect_read(generate(edges, weighted, [&] { return random() >> 32; }));
    expect_read(generate(edges, weighted, [&] { return random(); }));
    expect_read(generate(edges, weighted, [&] { return random() >> random() % 64; }));
    expect_read(generate(edges, weighted, [&] { return pool[random() % pool.size()]; }));
  }
}

TEST(EdgeListFile, ManyChunksAndAnyNumberOfThreads) {
  std::mt19937_64 random(6);
  std::uint64_t next = 0;
  const std::vector<Generated> files{
      generate(60000, false, [&] { return random() % 50000; }),
      generate(60000, true, [&] { return random() >> random() % 64; }),
      generate(30000, false, [&] { return next++; }),
      generate(30000, false, [&] { return (next += 10) << 30; }),  // ascending
  };
  const int threads = omp_get_max_threads();
  for (const int count : {1, 2, 5}) {
    omp_set_num_threads(count);
    for (const Generated& made : files) expect_read(made);
  }
  omp_set_num_threads(threads);
}

TEST(EdgeListFile, OneHugeIdInASmallFileTakesNoMemory) {
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "0 1\n";
  for (const char* id : {"4000000000", "18446744073709551615"}) {
    const Read result = read(text + "1 " + id + "\n");
    EXPECT_EQ(result.vertices, 3u);
    EXPECT_EQ(result.original_ids.back(), std::stoull(id));
    EXPECT_LE(result.bytes, 2 * text.size() + (1 << 20));
  }
}

TEST(EdgeListFile, ErrorsSayPlaceValueRangeAndRemedy) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "x.txt: line 1: there is no edge, and a graph of 0 vertices cannot be used; give lines"},
      {"# 1 2\n\n", "line 3: there is no edge"},
      {"source,target\n", "there is no edge"},
      {"0 1\n1 -2\n", "x.txt: line 2: target '-2' is negative, outside 0..18446744073709551615"},
      {"-1 0\n", "line 1: source '-1' is negative"},
      {"0 1\nx 1\n", "line 2: source 'x' is not a whole number in 0..18446744073709551615"},
      {"a b\nc d\n", "line 2: source 'c' is not"},
      {"0 1\n18446744073709551616 1\n", "source '18446744073709551616' is outside 0.."},
      {"0 1.5\n", "target '1.5' is not a whole number"},
      {"0\n", "line 1: target is missing in '0'"},
      {"0 1\n7", "line 2: target is missing in '7'"},
      {"0 1\n\n7,,1\n", "line 3: target is missing in '7,,1'"},
      {"0;1\n", "source '0;1' is not a whole number"},
      {"0 1\n1 2 0.5\n", "line 2: '1 2 0.5' has more than the 2 columns of the first edge"},
      {"0 1 1\n1 2\n", "line 2: the weight is missing in '1 2'"},
      {"0 1 1 1\n", "line 1: '0 1 1 1' has more than the 3 columns"},
      {"0 1,\n", "line 1: '0 1,' has more than the 2 columns"},
      {"0 1 {}\n1 2 {'w': 2}\n", "line 2: '1 2 {'w': 2}' has more than the 2 columns"},
      {"0 1 1\n1 2 {}\n", "line 2: weight '{}' is not a finite number"},
      {"0 1 1\n1 2 inf\n", "line 2: weight 'inf' is not a finite number"},
      {"0 1 1\n1 2 NaN\n", "line 2: weight 'NaN' is not a finite number"},
      {"0 1 1\n1 2 x\n", "line 2: weight 'x' is not a finite number"},
      {std::string("0 1\n\0\x01\n", 7), "line 2: source '\?\?' is not a whole number"},
      {"0 1\n" + std::string(100, '!') + "\n", "source '" + std::string(40, '!') + "...' is not"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(expected), std::string::npos) << "expected: " << expected << "\n" << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(EdgeListFile, IdsThatAreVertices) {
  const auto read_ids = [](const std::string& text, EdgeListOptions options) {
    options.ids_are_vertices = true;
    return std::get<EdgeList<std::uint32_t>>(parse_edge_list(text, "x.el", options).edges);
  };
  const auto gaps = read_ids("7 3\n3 10\n", {});
  EXPECT_EQ(gaps.vertices, 11u);
  EXPECT_EQ(std::vector(gaps.source.begin(), gaps.source.end()),
            (std::vector<std::uint32_t>{7, 3}));
  EXPECT_EQ(std::vector(gaps.target.begin(), gaps.target.end()),
            (std::vector<std::uint32_t>{3, 10}));
  EXPECT_EQ(read_ids("0,1\n", {.vertices = 9}).vertices, 9u);
  EXPECT_EQ(read_ids("0 1 2\n", {.weighted = true}).weight[0], 2.0f);
  for (const auto& [text, ids, expected] :
       std::vector<std::tuple<std::string, EdgeListOptions, std::string>>{
           {"0 1\n1 9\n", {.vertices = 9}, "x.el: line 2: target '9' is outside 0..8"},
           {"9 1\n", {.vertices = 9}, "x.el: line 1: source '9' is outside 0..8"},
           {"0 1\n", {.weighted = true}, "x.el: line 1: the weight is missing in '0 1'"},
           {"0 1000000000000\n",
            {.ids_are_vertices = true},
            "x.el: ids: the largest id is 1000000000000, but 1 edges"},
       }) {
    try {
      parse_edge_list(text, "x.el", ids);
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find(expected), 0u) << error.what();
    }
  }
}

TEST(EdgeListFile, TheFirstOfManyErrorsIsReported) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += i == 40000 ? "0 -7\n" : i > 40000 ? "1 x\n" : "1 1\n";
  for (int repeat = 0; repeat < 5; ++repeat)
    EXPECT_EQ(error_of(text).find("x.txt: line 40001: target '-7'"), 0u);
}

TEST(EdgeListFile, DamagedFilesGiveErrorsOnly) {
  const std::string whole = "# c\nu,v,w\n1,20,0.5\r\n3 300 -1e-3\n\n4 18446744073709551615 7";
  for (std::size_t size = 0; size <= whole.size(); ++size) error_of(whole.substr(0, size));
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    error_of(flipped);  // may be right or wrong; anything but InputError fails the test
  }
}

class EdgeListFileWriting : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "plait_edges_" + std::to_string(getpid()) + ".txt";
  void TearDown() override { std::filesystem::remove(path_); }

  std::string written(const std::string& text) {
    ParsedEdgeList parsed = parse_edge_list(text, "x");
    Dataset dataset;
    dataset.graph = build_csr(std::move(parsed.edges));
    dataset.original_ids = parsed.original_ids;
    AtomicFile file(path_);
    write_edge_list(dataset, file);
    file.commit();
    std::ostringstream result;
    result << std::ifstream(path_).rdbuf();
    return result.str();
  }
};

TEST_F(EdgeListFileWriting, ByTargetsWithOriginalIds) {
  EXPECT_EQ(written("1 0\n0 1\n2 0\n"), "# 3 vertices, 3 edges\n1\t0\n2\t0\n0\t1\n");
  EXPECT_EQ(written("18446744073709551615 5 0.1\n5 5 2\n"),
            "# 2 vertices, 2 edges\n5\t5\t2\n18446744073709551615\t5\t0.1\n");
}

TEST_F(EdgeListFileWriting, ReadsBackAsItself) {
  std::mt19937_64 random(8);
  const std::string once =
      written(generate(20000, true, [&] { return random() >> random() % 64; }).text);
  EXPECT_EQ(written(once), once);
}

}  // namespace
}  // namespace plait
