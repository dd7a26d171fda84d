// Arrays of .npz under other names, and arrays that no reader knows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/io/npz_archive.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string parse_error(const Arrays& arrays) {
  return error_of([&] { parse(arrays); });
}

const auto& narrow(const ParsedDataset& parsed) {
  return std::get<EdgeList<std::uint32_t>>(parsed.edges);
}

TEST(NpzNames, ArraysThatAreNotReadAreNamed) {
  EXPECT_THAT(parse(with(with(full(), "extra", full().at("y")), "tag", full().at("y"))).warnings,
              ElementsAre("arrays that are not read are left out: extra, tag"));
  std::vector<ZipMember> members{{"edge_index.npy", full().at("edge_index")},
                                 {"notes.txt", "words"}};
  EXPECT_THAT(parse(zip_of(members)).warnings, ElementsAre(HasSubstr("left out: notes.txt")));
  Arrays many = edges_alone();
  for (char c = 'a'; c <= 'x'; ++c) many[std::string("z") + c] = full().at("y");
  EXPECT_THAT(parse(many).warnings, ElementsAre(HasSubstr("zs, zt and 4 others")));
}

TEST(NpzNames, OtherCommonNames) {
  const Arrays own = full();
  Arrays others{{"edge_index", own.at("edge_index")},
                {"num_nodes", file_of<std::int64_t>("<i8", "()", {4})}};
  for (const auto& [key, name] : std::map<std::string, std::string>{{"edge_weight", "weights"},
                                                                    {"x", "node_feat"},
                                                                    {"y", "labels"},
                                                                    {"train", "train_idx"},
                                                                    {"val", "valid_idx"},
                                                                    {"test", "idx_test"}})
    others[name] = own.at(key);
  const ParsedDataset parsed = parse(others);
  EXPECT_THAT(parsed.warnings, IsEmpty());
  EXPECT_THAT(narrow(parsed).weight.span(), ElementsAre(1, .5, 2));
  EXPECT_EQ(parsed.dataset.features.width, 2u);
  EXPECT_THAT(parsed.dataset.labels.span(), ElementsAre(0, 2, -1, 1));
  EXPECT_THAT(parsed.dataset.splits.span(),
              ElementsAre(Split::test, Split::none, Split::train, Split::test));
  // Of two names, the first of the list is read.
  EXPECT_THAT(parse(with(own, "features", own.at("y"))).warnings,
              ElementsAre(HasSubstr("left out: features")));
  const Arrays masks =
      with(edges_alone(), "valid_mask", file_of<std::uint8_t>("|b1", "(5,)", {1, 0, 0, 0, 1}));
  EXPECT_EQ(build(parse(masks)).splits[4], Split::validation);
  const Dataset batch = build(parse(with(edges_alone(), "batch", graphs().at("graph_id"))));
  EXPECT_EQ(batch.graphs, 3u);
}

TEST(NpzNames, TheNumberOfVerticesIsStated) {
  const auto stated = [](std::int64_t count) {
    return with(edges_alone(), "num_nodes", file_of<std::int64_t>("<i8", "(1,)", {count}));
  };
  EXPECT_EQ(narrow(parse(stated(9))).vertices, 9u);
  EXPECT_THAT(parse_error(stated(0)), HasSubstr("array num_nodes: the graph has no vertices"));
  EXPECT_THAT(parse_error(stated(2)), HasSubstr("array edge_index: element (0, 2): value 2"));
  EXPECT_THAT(parse_error(with(stated(9), "x", full().at("x"))),
              HasSubstr("array num_nodes: it is 9, but the features have 4 rows"));
  EXPECT_THAT(
      parse_error(stated(400000000)),
      HasSubstr("array num_nodes: 400000000 vertices are far more than the 6 that 3 edges"));
  const auto told = [](const Arrays& arrays, std::uint64_t vertices) {
    const auto bytes = to_bytes(archive_of(arrays));
    return narrow(parse_npz(bytes.span(), "x.npz", vertices)).vertices;
  };
  EXPECT_EQ(told(stated(400000000), 400000000), 400000000u);
  EXPECT_EQ(told(edges_alone(), 7), 7u);
  EXPECT_THROW(told(stated(9), 8), InputError);
  Arrays gnnadvisor{{"src_li", full().at("y")}, {"dst_li", full().at("y")}};
  gnnadvisor["src_li"] = gnnadvisor["dst_li"] = file_of<std::int32_t>("<i4", "(1,)", {1});
  gnnadvisor["num_nodes"] = stated(400000000).at("num_nodes");
  EXPECT_THAT(parse_error(gnnadvisor), HasSubstr("array num_nodes: 400000000 vertices"));
}

TEST(NpzNames, ALoneAttributeOfEdgesIsTheirWeight) {
  const ParsedDataset column =
      parse(with(edges_alone(), "edge_attr", file_of<float>("<f4", "(3, 1)", {1, 2, 3})));
  EXPECT_THAT(narrow(column).weight.span(), ElementsAre(1, 2, 3));
  EXPECT_THAT(column.warnings, ElementsAre(HasSubstr("edge_attr is read as the weights")));
  const ParsedDataset wide =
      parse(with(edges_alone(), "edge_attr", file_of<float>("<f4", "(3, 2)", Floats(6))));
  EXPECT_TRUE(narrow(wide).weight.empty());
  EXPECT_THAT(wide.warnings, ElementsAre(HasSubstr("edge_attr has shape (3, 2)")));
  EXPECT_THAT(parse(with(edges_alone(), "weights", full().at("x"))).warnings,
              ElementsAre(HasSubstr("weights has shape (4, 2)")));
  EXPECT_THAT(parse(with(full(), "edge_attr", full().at("edge_weight"))).warnings,
              ElementsAre(HasSubstr("left out: edge_attr")));
}

TEST(NpzNames, EdgesInTwoArrays) {
  const std::string ends = file_of<std::int64_t>("<i8", "(2,)", {0, 2});
  const std::string others = file_of<std::int32_t>("<i4", "(2,)", {1, 0});
  const ParsedDataset dgl = parse(Arrays{{"src", ends}, {"dst", others}});
  EXPECT_THAT(narrow(dgl).source.span(), ElementsAre(0, 2));
  EXPECT_THAT(narrow(dgl).target.span(), ElementsAre(1, 0));
  EXPECT_EQ(narrow(dgl).vertices, 3u);
  EXPECT_THAT(dgl.warnings, IsEmpty());
  EXPECT_THAT(parse(Arrays{{"row", ends}, {"col", others}}).warnings,
              ElementsAre(HasSubstr("row is read as the sources of edges, and col as")));
  EXPECT_THAT(parse_error(Arrays{{"src", ends}, {"dst", full().at("y")}}), HasSubstr("negative"));
  EXPECT_THAT(
      parse_error(Arrays{{"src", ends}, {"dst", file_of<std::int32_t>("<i4", "(1,)", {1})}}),
      HasSubstr("it has 1 elements beside 2 of src"));
}

TEST(NpzNames, LabelsInAColumn) {
  for (const auto& [values, classes] :
       std::map<Int32s, int>{{{0, 1, -1, 2}, 3}, {{0, 1, 1, 0}, 2}}) {
    const ParsedDataset parsed =
        parse(with(edges_alone(), "y", file_of<std::int32_t>("<i4", "(4, 1)", values)));
    EXPECT_EQ(Int32s(parsed.dataset.labels.begin(), parsed.dataset.labels.end()), values);
    EXPECT_EQ(parsed.dataset.classes, classes);
    EXPECT_TRUE(parsed.dataset.label_sets.empty());
    EXPECT_THAT(parsed.warnings, IsEmpty());
  }
  const Dataset sets =
      build(parse(with(graphs(), "y", file_of<std::int32_t>("<i4", "(3, 1)", {1, 0, 1}))));
  EXPECT_EQ(sets.labels.size(), 3u) << "of graphs";
}

}  // namespace
}  // namespace plait
