// First lines of edge lists: comments that say something, names of columns, and counts.
#include "plait/io/edge_list_head.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/io/edge_list_file.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Read {
  std::uint64_t vertices, edges;
  std::vector<std::uint64_t> original_ids;
  std::string undirected;
  std::string notes;  // one line each
};

Read read(const std::string& text, const EdgeListOptions& options = {}) {
  const ParsedEdgeList parsed = parse_edge_list(text, "x.txt", options);
  Read result{};
  std::visit(
      [&](const auto& list) {
        result.vertices = list.vertices;
        result.edges = list.edges();
      },
      parsed.edges);
  result.original_ids.assign(parsed.original_ids.begin(), parsed.original_ids.end());
  result.undirected = parsed.undirected;
  for (const std::string& note : parsed.notes) result.notes += note + "\n";
  return result;
}

std::string fails(const std::string& text, const EdgeListOptions& options = {}) {
  return error_of([&] { parse_edge_list(text, "x.txt", options); });
}

const std::string kRing = "0 1\n1 2\n2 3\n4 0\n";

TEST(EdgeListHead, CountsThatFitAreNoEdge) {
  for (const char* counts : {"5 4\n", "# c\n5,4\r\n", "names of columns\n5 5 4\n"}) {
    const Read found = read(counts + kRing);
    EXPECT_EQ(found.vertices, 5u) << counts;
    EXPECT_EQ(found.edges, 4u);
    EXPECT_THAT(found.notes, HasSubstr("is read as the counts of 5 vertices, 0 to 4, and 4 edges; "
                                       "first-line edge reads it as an edge"));
  }
  EXPECT_EQ(read("9 4\n" + kRing).vertices, 9u) << "some have no edges";
  EXPECT_EQ(read("5 5 2\n0 1 .5\n4 1 2\n").edges, 2u);
  EXPECT_EQ(read("5 2\n0 1 .5\n4 1 2\n").edges, 2u) << "other columns";
  EXPECT_EQ(read("5 5 2\n0 1\n4 1\n").edges, 2u);
  const Read from_one = read("5 3\n1 2\n2 3\n5 1\n");
  EXPECT_EQ(from_one.vertices, 5u);
  EXPECT_THAT(from_one.original_ids, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(from_one.notes, HasSubstr("5 vertices, 1 to 5,"));
  EXPECT_EQ(read("5 5 3\n1 2\n2 3\n5 1\n").vertices, 5u) << "other columns, from 1";
  EXPECT_EQ(read("5 3\n1 2 .5\n2 3 1\n5 1 2\n", {.first_line = FirstLine::counts}).edges, 3u);
}

TEST(EdgeListHead, CountsThatDoNotFitAreAnEdge) {
  EXPECT_EQ(read("0 1\n" + kRing).notes, "");
  EXPECT_EQ(read("2 4\n" + kRing).edges, 5u);
  EXPECT_THAT(read("2 4\n" + kRing).notes, HasSubstr("line 1 '2 4' is read as an edge; if"));
  EXPECT_THAT(read("5 8\n" + kRing).notes, HasSubstr("'5 8' is read as an edge; if"));
  EXPECT_EQ(read("5 8\n" + kRing).vertices, 7u);
  EXPECT_THAT(read("9 8\n" + kRing).notes, HasSubstr("give first-line counts or skip"));
  EXPECT_EQ(read("3 8\n" + kRing).notes, "") << "an id of other edges";
  EXPECT_EQ(read("5 1\n").edges, 1u) << "nothing follows";
  for (const char* text : {"5 5 7\n0 1\n1 2\n", "5 7\n0 1 3\n1 2 4\n"})
    EXPECT_THAT(fails(text),
                AllOf(HasSubstr("x.txt: line 1: '5 "),
                      HasSubstr("nor does it count them: there are 2, with ids up to 2"),
                      HasSubstr("give first-line skip")));
  EXPECT_EQ(read("5 4 {}\n0 1\n1 2\n2 3\n3 4\n").edges, 5u);
}

TEST(EdgeListHead, OptionsDecideWhatTheFirstLineIs) {
  const Read edge = read("5 4\n" + kRing, {.first_line = FirstLine::edge});
  EXPECT_EQ(edge.edges, 5u);
  EXPECT_EQ(edge.notes, "");
  const Read counts = read("5 4\n" + kRing, {.first_line = FirstLine::counts});
  EXPECT_EQ(counts.edges, 4u);
  EXPECT_EQ(counts.notes, "");
  for (const char* line : {"5 8\n", "any 7 words\n", "1;2\n"})
    EXPECT_EQ(read(line + kRing, {.first_line = FirstLine::skip}).edges, 4u) << line;
  EXPECT_THAT(fails("5 8\n" + kRing, {.first_line = FirstLine::counts}),
              HasSubstr("x.txt: line 1: it states 5 vertices and 8 edges, but 4 edges follow"));
  EXPECT_THAT(fails("0 1\n" + kRing, {.first_line = FirstLine::counts}),
              HasSubstr("line 1: '0 1' is not two or three counts before edges"));
  EXPECT_THAT(fails("0 1\n", {.first_line = FirstLine::skip}), HasSubstr("there is no edge"));
  EXPECT_THROW(parse_first_line("header"), UsageError);
}

TEST(EdgeListHead, VerticesThatTheCallerKnows) {
  EXPECT_EQ(read(kRing, {.vertices = 9}).vertices, 9u);
  EXPECT_THAT(read("7 1\n", {.vertices = 8}).original_ids, IsEmpty());
  EXPECT_EQ(read("5 4\n" + kRing, {.vertices = 5}).edges, 4u);
  EXPECT_EQ(read("4 3\n1 2\n2 3\n4 1\n", {.vertices = 4}).edges, 3u) << "ids from 1";
  const Read other = read("5 4\n" + kRing, {.vertices = 6});
  EXPECT_EQ(other.edges, 5u);
  EXPECT_THAT(other.notes, HasSubstr("is read as an edge"));
  EXPECT_THAT(fails(kRing, {.vertices = 4}),
              HasSubstr("line 4: source '4' is outside 0..3; correct "
                        "the line, or the number of vertices, 4"));
  EXPECT_THAT(fails("4 3\n1 2\n2 3\n4 0\n", {.vertices = 4}), HasSubstr("'4' is outside 0..3"));
  // A few bytes must not make a graph of millions of vertices.
  EXPECT_THAT(fails("400000000 1\n0 1\n"),
              HasSubstr("line 1: 400000000 vertices are far more than the 2 that 1 edges can name; "
                        "if the number is right, give vertices 400000000"));
  EXPECT_EQ(read("5000000 1\n0 1\n", {.vertices = 5000000}).vertices, 5000000u);
}

TEST(EdgeListHead, NamesOfColumnsHaveNoNumber) {
  for (const char* names : {"source,target", "id_1,id_2", "\"a\" \"b\"", "_u _v", "\xc3\xa9 v"}) {
    const Read found = read(std::string(names) + "\n" + kRing);
    EXPECT_EQ(found.edges, 4u) << names;
    EXPECT_THAT(found.notes, HasSubstr("is read as the names of columns")) << names;
  }
  const Read bare = read("source,target\n" + kRing, {.first_line = FirstLine::skip});
  EXPECT_EQ(bare.edges, 4u) << "the names are the first line";
  EXPECT_EQ(bare.notes, "");
  for (const char* wrong : {"x1,2", "x 0.5", "\"0\",\"1\"", "node -1"})
    EXPECT_THAT(fails(std::string(wrong) + "\n" + kRing), HasSubstr("x.txt: line 1: source '"))
        << wrong;
}

// Returns the edges of lines `0 1 weight` and `2 3 weight` as "0>1 2>3", and the notes.
std::pair<std::string, std::string> read_named(const std::string& names,
                                               const EdgeListOptions& options = {}) {
  const ParsedEdgeList parsed = parse_edge_list(names + "\n0 1 5\n2 3 7\n", "x.txt", options);
  const auto& list = std::get<EdgeList<std::uint32_t>>(parsed.edges);
  std::string edges;
  for (std::size_t e = 0; e < list.edges(); ++e)
    edges += fmt::format("{}{}>{}", e > 0 ? " " : "", list.source[e], list.target[e]);
  return {edges, fmt::format("{}", fmt::join(parsed.notes, "\n"))};
}

TEST(EdgeListHead, NamesOfColumnsAreHonoured) {
  for (const char* usual : {"source,target,weight", "FromNodeId ToNodeId w", "src dst edge_weight",
                            "u v w", "id,friend,weight", "from,x,time", "id_1 id_2 rating"}) {
    const auto [edges, notes] = read_named(usual);
    EXPECT_EQ(edges, "0>1 2>3") << usual;
    EXPECT_THAT(notes, HasSubstr(": the first is the source, the second the target, the third the "
                                 "weight"))
        << usual;
  }
  for (const char* swapped : {"target,source,weight", "\"dst\",\"src\",\"weight\"", "to from w",
                              "destination_id x y", "x SourceNode y"}) {
    const auto [edges, notes] = read_named(swapped);
    EXPECT_EQ(edges, "1>0 3>2") << swapped;
    EXPECT_THAT(notes, HasSubstr(": the first is the target, the second the source, the third"))
        << swapped;
  }
  for (const char* other :
       {"id,source,target", "edge_id src dst", "id,a,b", "index from to", "weight,source,target",
        "source,weight,target", "src,type,dst", "from source w", "target to w"}) {
    EXPECT_THAT(
        fails(other + std::string("\n0 1 5\n")),
        AllOf(HasSubstr("x.txt: line 1: "), HasSubstr("names columns that are not a source"),
              HasSubstr("first-line skip")))
        << other;
    EXPECT_EQ(read_named(other, {.first_line = FirstLine::skip}).first, "0>1 2>3") << other;
  }
  EXPECT_THAT(fails("source target\n0 1 5\n"),
              HasSubstr("names two columns, but lines have three"));
  EXPECT_THAT(fails("target source\n1 x\n"), HasSubstr("line 2: source 'x'"));
  EXPECT_THAT(read("target source\n" + kRing).notes, HasSubstr("the second the source\n"));
}

TEST(EdgeListHead, CommaAndBlankInOneLine) {
  for (const char* line : {"1,000 2", "1 2,000", "1 2,5"})
    EXPECT_THAT(fails(line + std::string("\n")),
                HasSubstr("has a comma between two of its columns alone"))
        << line;
  EXPECT_EQ(read("1,0,2\n1 , 0 , 2\n1 0 2\n1,0,2 \n").edges, 4u);
}

TEST(EdgeListHead, CommentsThatSayUndirected) {
  const auto mark = [](const char* comments) { return read(comments + kRing).undirected; };
  EXPECT_EQ(mark("# Undirected graph: ../x.txt\n"), "line 1 '# Undirected graph: ../x.txt'");
  EXPECT_EQ(mark("# names\n#undirected Graph\n"), "line 2 '#undirected Graph'");
  EXPECT_EQ(mark("% sym unweighted\n% 4 5 5\n"), "line 1 '% sym unweighted'");
  for (const char* other :
       {"# Directed graph (each unordered pair of nodes is saved once): x\n", "% asym positive\n",
        "% x\n% sym\n", "# sym\n", "# An undirected graph\n"})
    EXPECT_EQ(mark(other), "") << other;
  EXPECT_EQ(read(kRing + "# Undirected graph\n").undirected, "");
  EXPECT_THAT(read("% bip unweighted\n" + kRing).notes, HasSubstr("two sets of vertices"));
}

TEST(EdgeListHead, TheMarkOfTheByteOrderIsNoText) {
  const std::string mark = "\xef\xbb\xbf";
  for (const std::string first :
       {"", "# Undirected graph\n", "% sym\n", "source target\n", "5 4\n"}) {
    const Read with = read(mark + first + kRing), without = read(first + kRing);
    EXPECT_EQ(with.vertices, without.vertices) << first;
    EXPECT_EQ(with.edges, without.edges) << first;
    EXPECT_EQ(with.undirected, without.undirected) << first;
    EXPECT_EQ(with.notes, without.notes) << first;
  }
  EXPECT_THAT(fails(mark + "0 x\n"), HasSubstr("line 1"));
}

TEST(EdgeListHead, CountsInComments) {
  const auto notes = [](const char* comments) { return read(comments + kRing).notes; };
  EXPECT_EQ(notes("# Nodes: 5 Edges: 4\n"), "");
  EXPECT_EQ(notes("# 5 vertices, 4 edges\n"), "");
  EXPECT_THAT(notes("# Nodes: 5 Edges: 6\n"), HasSubstr("says 6 edges, but the file holds 4"));
  EXPECT_THAT(notes("# 7 vertices, 4 edges\n"),
              HasSubstr("line 1 '# 7 vertices, 4 edges' says 7 vertices, but the edges name 5; "
                        "vertices 7 adds the others"));
  EXPECT_EQ(read("# 7 vertices, 4 edges\n" + kRing, {.vertices = 7}).notes, "");
}

}  // namespace
}  // namespace plait
