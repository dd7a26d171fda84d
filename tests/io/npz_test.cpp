// .npz: archives of NumPy and SciPy, made by hand and by Plait, and damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/io/npz_archive.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

template <class Source>
std::string parse_error(const Source& source) {
  return error_of([&] { parse(source); });
}

const auto& narrow(const ParsedDataset& parsed) {
  return std::get<EdgeList<std::uint32_t>>(parsed.edges);
}

TEST(NpzArchive, Everything) {
  const ParsedDataset parsed = parse(full());
  const auto& edges = narrow(parsed);
  EXPECT_EQ(edges.vertices, 4u);
  EXPECT_THAT(edges.source.span(), ElementsAre(0, 1, 2));
  EXPECT_THAT(edges.target.span(), ElementsAre(1, 2, 0));
  EXPECT_THAT(edges.weight.span(), ElementsAre(1, .5, 2));
  const Dataset& data = parsed.dataset;
  EXPECT_EQ(data.features.rows, 4u);
  EXPECT_EQ(data.features.width, 2u);
  EXPECT_THAT(data.features.f32.span(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(data.labels.span(), ElementsAre(0, 2, -1, 1));
  EXPECT_EQ(data.classes, 3);
  EXPECT_EQ(data.split_count, 1u);
  EXPECT_THAT(data.splits.span(), ElementsAre(Split::test, Split::none, Split::train, Split::test));
  EXPECT_THAT(data.original_ids.span(), ElementsAre(10, 20, 30, ~0ull));
  EXPECT_THAT(parsed.warnings, IsEmpty());
}

TEST(NpzArchive, SparseFeatures) {
  Arrays arrays = edges_alone();
  arrays["x_data"] = file_of<double>("<f8", "(3,)", {1, 2, 3});
  arrays["x_indices"] = file_of<std::int32_t>("<i4", "(3,)", {4, 0, 1});
  arrays["x_indptr"] = file_of<std::int64_t>("<i8", "(6,)", {0, 1, 1, 3, 3, 3});
  arrays["x_shape"] = file_of<std::int64_t>("<i8", "(2,)", {5, 5});
  const Dataset data = build(parse(arrays));
  EXPECT_EQ(data.vertices(), 5u);  // the rows of x, beyond the largest id
  EXPECT_TRUE(data.features.is_sparse());
  EXPECT_THAT(data.features.sparse.offsets.span(), ElementsAre(0, 1, 1, 3, 3, 3));
  EXPECT_THAT(data.features.sparse.neighbours.span(), ElementsAre(4, 0, 1));
  EXPECT_THAT(data.features.sparse.weights.span(), ElementsAre(1, 2, 3));

  const auto error = [&](const char* key, const std::string& file) {
    return parse_error(with(arrays, key, file));
  };
  EXPECT_THAT(error("x_indices", file_of<std::int32_t>("<i4", "(3,)", {4, 0, 5})),
              HasSubstr("array x_indices: element (2): value 5 is outside 0..4"));
  EXPECT_THAT(error("x_indptr", file_of<std::int64_t>("<i8", "(6,)", {0, 1, 1, 3, 2, 3})),
              HasSubstr("does not rise from 0 to the number of entries, 3"));
  EXPECT_THAT(error("x_indptr", file_of<std::int64_t>("<i8", "(6,)", {0, 1, 1, 2, 2, 2})),
              HasSubstr("does not rise"));
  EXPECT_THAT(error("x_indptr", file_of<std::int64_t>("<i8", "(2,)", {0, 3})),
              HasSubstr("shape (2,) where (6,) belongs"));
  EXPECT_THAT(error("x_data", file_of<double>("<f8", "(2,)", {1, 2})),
              HasSubstr("shape (2,) where (3,) belongs"));
  EXPECT_THAT(error("x_data", file_of<double>("<f8", "(3,)", {1, std::nan(""), 2})),
              HasSubstr("array x_data: element (1): value nan"));
  for (const std::int64_t rows : {std::int64_t{-1}, std::int64_t{1} << 40, INT64_MAX})
    EXPECT_THROW(parse(with(arrays, "x_shape", file_of<std::int64_t>("<i8", "(2,)", {rows, 5}))),
                 InputError);
  EXPECT_THAT(error("x_shape", file_of<std::int64_t>("<i8", "(2,)", {5, 1ll << 33})),
              HasSubstr("columns are outside"));
  arrays.erase("x_indptr");
  EXPECT_THAT(parse_error(arrays), StartsWith("x.npz: array x_indptr: it is missing; "));
}

TEST(NpzArchive, AMaskIsOneSplit) {
  Arrays arrays = edges_alone();
  arrays["train_mask"] = file_of<std::uint8_t>("|b1", "(5,)", {1, 0, 0, 0, 1});
  arrays["test_mask"] = file_of<std::uint8_t>("|b1", "(5,)", {0, 0, 1, 0, 0});
  const Dataset data = build(parse(arrays));
  EXPECT_EQ(data.vertices(), 5u);
  EXPECT_EQ(data.split_count, 1u);
  EXPECT_THAT(data.splits.span(),
              ElementsAre(Split::train, Split::none, Split::test, Split::none, Split::train));
  EXPECT_THAT(
      parse_error(with(arrays, "val_mask", file_of<std::uint8_t>("|b1", "(5,)", {0, 0, 1, 0, 0}))),
      HasSubstr("vertex 2 is in another part of the split too"));
  EXPECT_THAT(
      parse_error(with(arrays, "val_mask", file_of<std::uint8_t>("|b1", "(1, 5)", Bytes8(5)))),
      HasSubstr("array val_mask: shape (1, 5) where (5, splits) belongs"));
  // Lists of ids come before it.
  arrays["train"] = file_of<std::int64_t>("<i8", "(1,)", {3});
  EXPECT_THAT(parse(arrays).warnings, ElementsAre(HasSubstr("train_mask is passed over"),
                                                  HasSubstr("test_mask is passed over")));
  EXPECT_THAT(build(parse(arrays)).splits.span(),
              ElementsAre(Split::none, Split::none, Split::none, Split::train, Split::none));
}

TEST(NpzArchive, MasksOfPygHaveTheirSplitsLast) {
  Arrays arrays = edges_alone();
  arrays["train_mask"] = file_of<std::uint8_t>("|b1", "(4, 2)", {1, 0, 0, 0, 0, 1, 0, 0});
  arrays["test_mask"] = file_of<std::uint8_t>("|b1", "(4,)", {0, 0, 0, 1});
  const auto splits = ElementsAre(Split::train, Split::none, Split::none, Split::test, Split::none,
                                  Split::none, Split::train, Split::test);
  const Dataset data = build(parse(arrays));
  EXPECT_EQ(data.vertices(), 4u);
  EXPECT_EQ(data.split_count, 2u);
  EXPECT_THAT(data.splits.span(), splits);
  arrays["train_mask"] = file_of(dictionary("|b1", "(4, 2)", "True"),
                                 bytes_of<std::uint8_t>({1, 0, 0, 0, 0, 0, 1, 0}));
  EXPECT_THAT(build(parse(arrays)).splits.span(), splits);
  EXPECT_THAT(
      parse_error(with(arrays, "val_mask", file_of<std::uint8_t>("|b1", "(4, 3)", Bytes8(12)))),
      HasSubstr("array train_mask: shape (4, 2) where (4, 3) belongs"));
}

TEST(NpzArchive, MasksAreAlternativeSplits) {
  Arrays arrays = edges_alone();
  arrays["train_masks"] = file_of<std::uint8_t>("|b1", "(2, 4)", {1, 0, 0, 0, 0, 0, 0, 1});
  arrays["val_masks"] = file_of<std::uint8_t>("|b1", "(2, 4)", {0, 1, 0, 0, 0, 0, 1, 0});
  const auto check = [](const Arrays& a) {
    const Dataset data = build(parse(a));
    EXPECT_EQ(data.vertices(), 4u);
    EXPECT_EQ(data.split_count, 2u);
    EXPECT_THAT(data.splits.span(),
                ElementsAre(Split::train, Split::validation, Split::none, Split::none, Split::none,
                            Split::none, Split::validation, Split::train));
  };
  check(arrays);
  check(with(arrays, "train_masks",
             file_of(dictionary("|b1", "(2, 4)", "True"),
                     bytes_of<std::uint8_t>({1, 0, 0, 0, 0, 0, 0, 1}))));
  EXPECT_THAT(
      parse_error(with(arrays, "test_masks", file_of<std::uint8_t>("|b1", "(4,)", Bytes8(4)))),
      HasSubstr("array test_masks: shape (4,) where (2, 4) belongs"));
  EXPECT_THAT(parse_error(with(arrays, "val_masks",
                               file_of<std::uint8_t>("|b1", "(2, 4)", {1, 0, 0, 0, 0, 0, 0, 0}))),
              HasSubstr("vertex 0 is in another part of the split too"));
  EXPECT_THAT(parse_error(with(arrays, "val_masks",
                               file_of<std::uint8_t>("|u1", "(2, 4)", {0, 0, 0, 0, 0, 0, 0, 2}))),
              HasSubstr("element (1, 3): value 2 is outside 0..1"));
  // A shape without elements promises nothing.
  EXPECT_THROW(parse(with(edges_alone(), "train_masks",
                          file_of<std::uint8_t>("|b1", "(0, 1099511627776)", {}))),
               InputError);
  EXPECT_THROW(parse(with(edges_alone(), "train_masks",
                          file_of<std::uint8_t>("|b1", "(1099511627776, 0)", {}))),
               InputError);
}

TEST(NpzArchive, TheNumberOfVertices) {
  const auto count = [](const Arrays& arrays) { return build(parse(arrays)).vertices(); };
  EXPECT_EQ(count(edges_alone()), 3u);
  EXPECT_EQ(count(with(edges_alone(), "y", file_of<std::int32_t>("<i4", "(5,)", Int32s(5)))), 5u);
  EXPECT_EQ(count(with(edges_alone(), "y", file_of<std::int32_t>("<i4", "(5,)", Int32s(5, -1)))),
            5u);
  EXPECT_EQ(count(with(edges_alone(), "graph_id", file_of<std::int32_t>("<i4", "(7,)", Int32s(7)))),
            7u);
  EXPECT_EQ(count(with(edges_alone(), "x", file_of<float>("<f4", "(6, 1)", Floats(6)))), 6u);
  EXPECT_EQ(count(with(edges_alone(), "y", file_of<std::uint8_t>("|u1", "(4, 2)", Bytes8(8)))), 4u);
  // Rows of x are believed even when ids contradict them, which is an error.
  EXPECT_THAT(parse_error(with(edges_alone(), "x", file_of<float>("<f4", "(2, 1)", Floats(2)))),
              HasSubstr("array edge_index: element (0, 2): value 2 is outside 0..1"));
  // No bytes stand behind these rows.
  EXPECT_EQ(count(with(edges_alone(), "x", file_of<float>("<f4", "(1099511627776, 0)", {}))), 3u);
  EXPECT_EQ(count(with(edges_alone(), "y", file_of<float>("<f4", "(1099511627776, 0)", {}))), 3u);
}

TEST(NpzArchive, OneVertexAndNoEdges) {
  Arrays arrays{{"edge_index", file_of<std::int32_t>("<i4", "(2, 0)", {})}};
  EXPECT_THAT(parse_error(arrays), HasSubstr("no vertices"));
  arrays["y"] = file_of<std::int32_t>("<i4", "(1,)", {0});
  const Dataset data = build(parse(arrays));
  EXPECT_EQ(data.vertices(), 1u);
  EXPECT_EQ(data.edges(), 0u);
  EXPECT_EQ(data.classes, 1);
}

TEST(NpzArchive, LeavesOutWhatIsNotALabelAVertex) {
  const auto warning = [](const std::string& y) {
    const ParsedDataset parsed = parse(with(with(edges_alone(), "y", y), "graph_id",
                                            file_of<std::int32_t>("<i4", "(4,)", Int32s(4))));
    EXPECT_TRUE(parsed.dataset.labels.empty());
    EXPECT_EQ(parsed.dataset.classes, 0);
    EXPECT_EQ(narrow(parsed).vertices, 4u);
    return parsed.warnings.size() == 1 ? parsed.warnings[0] : "not one warning";
  };
  EXPECT_THAT(warning(file_of<std::uint8_t>("|u1", "(4, 2)", Bytes8(8))),
              HasSubstr("several labels"));
  EXPECT_THAT(warning(file_of<std::int32_t>("<i4", "(2,)", {0, 1})),
              HasSubstr("y has shape (2,), which is not a label for each of 4 vertices"));
  EXPECT_THAT(warning(file_of<float>("<f4", "(4,)", Floats(4))), HasSubstr("integers"));
}

TEST(NpzArchive, LabelSets) {
  const auto sets = [](const std::string& y) {
    const Dataset data = build(parse(with(edges_alone(), "y", y)));
    EXPECT_EQ(data.vertices(), 4u);  // beyond the largest id
    EXPECT_EQ(data.classes, 2);
    EXPECT_TRUE(data.labels.empty());
    EXPECT_EQ(data.task(), TaskKind::multi_label);
    return Bytes8(data.label_sets.begin(), data.label_sets.end());
  };
  const Bytes8 wanted{0, 1, 1, 0, 0, 0, 1, 1};
  EXPECT_EQ(sets(file_of<std::uint8_t>("|u1", "(4, 2)", wanted)), wanted);
  EXPECT_EQ(sets(file_of<std::int64_t>("<i8", "(4, 2)", {0, 1, 1, 0, 0, 0, 1, 1})), wanted);
  EXPECT_EQ(sets(file_of(dictionary("|b1", "(4, 2)", "True"), std::string("\0\1\0\1\1\0\0\1", 8))),
            wanted);
  const auto with_y = [](const std::string& y) { return with(edges_alone(), "y", y); };
  EXPECT_THAT(parse_error(with_y(file_of<std::uint8_t>("|u1", "(4, 2)", {0, 0, 0, 2, 0, 0, 0, 0}))),
              HasSubstr("array y: element (1, 1): value 2 is outside 0..1"));
  for (const std::string& y : {file_of<std::uint8_t>("|u1", "(3, 2)", Bytes8(6)),
                               file_of<float>("<f4", "(4, 2)", Floats(8))}) {
    const ParsedDataset parsed = parse(with(with_y(y), "x", full().at("x")));
    EXPECT_TRUE(parsed.dataset.label_sets.empty());
    EXPECT_THAT(parsed.warnings,
                ElementsAre(HasSubstr("y has several labels per vertex that are")));
  }
}

TEST(NpzArchive, SetsOfGraphs) {
  const Dataset bare = build(parse(graphs()));
  EXPECT_EQ(bare.vertices(), 4u);
  EXPECT_EQ(bare.graphs, 3u);
  EXPECT_THAT(bare.graph_ids.span(), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(bare.labels.span(), ElementsAre(5, -1, 0));
  EXPECT_EQ(bare.classes, 6);
  const Dataset lists =
      build(parse(with(graphs(), "train", file_of<std::int32_t>("<i4", "(2,)", {0, 2}))));
  EXPECT_THAT(lists.splits.span(), ElementsAre(Split::train, Split::none, Split::train));
  const Dataset masks = build(parse(
      with(graphs(), "test_masks", file_of<std::uint8_t>("|b1", "(2, 3)", {0, 0, 1, 1, 0, 0}))));
  EXPECT_EQ(masks.vertices(), 4u);
  EXPECT_THAT(masks.splits.span(), ElementsAre(Split::none, Split::none, Split::test, Split::test,
                                               Split::none, Split::none));
  EXPECT_THAT(parse_error(with(graphs(), "train", file_of<std::int32_t>("<i4", "(1,)", {3}))),
              HasSubstr("array train: element (0): value 3 is outside 0..2"));
  EXPECT_THAT(
      parse_error(with(graphs(), "graph_id", file_of<std::int32_t>("<i4", "(4,)", {0, 1, 4, 2}))),
      HasSubstr("array graph_id: element (2): value 4 is outside 0..3"));
}

TEST(NpzArchive, LabelsOfVerticesComeBeforeGraphs) {
  const ParsedDataset parsed =
      parse(with(graphs(), "y", file_of<std::int32_t>("<i4", "(4,)", {0, 1, 1, 0})));
  EXPECT_FALSE(parsed.dataset.is_set_of_graphs());
  EXPECT_THAT(parsed.dataset.labels.span(), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(parsed.warnings, ElementsAre(HasSubstr("graph_id is left out")));
}

TEST(NpzArchive, TagsBecomeOneHotFeatures) {
  const Arrays tagged = with(graphs(), "tag", file_of<std::int32_t>("<i4", "(4,)", {2, 0, 2, 6}));
  const Dataset data = build(parse(tagged));
  EXPECT_EQ(data.features.width, 7u);
  EXPECT_THAT(data.features.sparse.neighbours.span(), ElementsAre(2, 0, 2, 6));
  EXPECT_THAT(data.features.sparse.weights.span(), ElementsAre(1, 1, 1, 1));
  EXPECT_FALSE(build(parse(with(tagged, "x", full().at("x")))).features.is_sparse());
}

TEST(NpzArchive, RefusesWrongValues) {
  const auto error = [](const char* key, const std::string& file) {
    return parse_error(with(full(), key, file));
  };
  EXPECT_THAT(error("y", file_of<std::int32_t>("<i4", "(4,)", {0, -2, 0, 0})),
              StartsWith("x.npz: array y: element (1): value -2 is outside -1..2147483646; "));
  EXPECT_THAT(error("train", file_of<std::int32_t>("<i4", "(1,)", {4})),
              HasSubstr("array train: element (0): value 4 is outside 0..3"));
  EXPECT_THAT(error("train", file_of<std::int32_t>("<i4", "(1,)", {-1})),
              HasSubstr("value -1 is outside 0..3"));
  EXPECT_THAT(error("train", file_of<std::int32_t>("<i4", "(1,)", {3})),
              HasSubstr("vertex 3 is in another part of the split too"));
  EXPECT_THAT(error("x", file_of<float>("<f4", "(4, 1)", {1, INFINITY, 2, 3})),
              HasSubstr("array x: element (1, 0): value inf is not a finite"));
  EXPECT_THAT(error("edge_weight", file_of<float>("<f4", "(2,)", {1, 1})),
              HasSubstr("shape (2,) where (3,) belongs"));
  EXPECT_THAT(error("edge_index", file_of<std::int32_t>("<i4", "(2, 1)", {0, -3})),
              HasSubstr("array edge_index: element (1, 0): value -3 is negative"));
  EXPECT_THAT(error("original_ids", file_of<std::uint64_t>("<u8", "(1,)", {1})),
              HasSubstr("shape (1,) where (4,) belongs"));
  EXPECT_THAT(error("x", file_of(dictionary("|O", "(4, 1)"), std::string(32, 'x'))),
              HasSubstr("array x: header: it holds Python objects, which would need a pickle"));
  EXPECT_THAT(parse_error(Arrays{{"z", full().at("x")}}),
              HasSubstr("neither edge_index nor a SciPy matrix, but z"));
}

// scipy.sparse.save_npz wrote this from csr_matrix(([1, 2.5, -3, 1], [2, 0, 1, 2], [0, 1, 1, 4]),
// shape (3, 3)) in single precision, deflated.
const char* const kFromScipy =
    "UEsDBBQAAAAIAAAAIQB0fSj+TAAAAJAAAAALABQAaW5kaWNlcy5ucHkBABAAkAAAAAAAAABMAAAAAAAAAJvsF+"
    "obEMnIUMZQ"
    "rZ6SWpxcpG6loG6TaaKuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5GiY6mjoKtQoUAC4mBghgBGIQGwBQSwMEFA"
    "AA"
    "AAgAAAAhAKRLRsdMAAAAkAAAAAoAFABpbmRwdHIubnB5AQAQAJAAAAAAAAAATAAAAAAAAACb7BfqGxDJyFDGUK2eklqcXK"
    "Ru"
    "paBuk2mirqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+"
    "RomOpo6CrUKFAAuBiBghGIWIAYAUEsDBBQAAAAIAAAAIQCj"
    "w3SXRQAAAIMAAAAKABQAZm9ybWF0Lm5weQEAEACDAAAAAAAAAEUAAAAAAAAAm+"
    "wX6hsQychQxlCtnpJanFykbqWgXhNsrK6j"
    "oJ6WX1RSlJgXn1+"
    "UkgoSd0vMKU4FihdnJBakAvkamjoKtQoUAa7k4iIAUEsDBBQAAAAIAAAAIQDx2RaiSQAAAJAAAAAJABQA"
    "c2hhcGUubnB5AQAQAJAAAAAAAAAASQAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuk2mhrqOgnpZfVFKUmBefX5SSCh"
    "J3"
    "S8wpTgWKF2ckFqQC+"
    "RpGOpo6CrUKFAAuZgYIgNEAUEsDBBQAAAAIAAAAIQBi49VrUgAAAJAAAAAIABQAZGF0YS5ucHkBABAA"
    "kAAAAAAAAABSAAAAAAAAAJvsF+"
    "obEMnIUMZQrZ6SWpxcpG6loG6TZqKuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5"
    "GiY6mjoKtQoUAC4GhgZ7BgYFBwYGhwMgNgBQSwECFAMUAAAACAAAACEAdH0o/"
    "kwAAACQAAAACwAAAAAAAAAAAAAAgAEAAAAA"
    "aW5kaWNlcy5ucHlQSwECFAMUAAAACAAAACEApEtGx0wAAACQAAAACgAAAAAAAAAAAAAAgAGJAAAAaW5kcHRyLm5weVBLAQ"
    "IU"
    "AxQAAAAIAAAAIQCjw3SXRQAAAIMAAAAKAAAAAAAAAAAAAACAAREBAABmb3JtYXQubnB5UEsBAhQDFAAAAAgAAAAhAPHZFq"
    "JJ"
    "AAAAkAAAAAkAAAAAAAAAAAAAAIABkgEAAHNoYXBlLm5weVBLAQIUAxQAAAAIAAAAIQBi49VrUgAAAJAAAAAIAAAAAAAAAA"
    "AA"
    "AACAARYCAABkYXRhLm5weVBLBQYAAAAABQAFABYBAACiAgAAAAA=";

std::string from_base64(std::string_view text) {
  const std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    held = held << 6 | static_cast<std::uint32_t>(digits.find(c));
    if ((bits += 6) >= 8) bytes += static_cast<char>(held >> (bits -= 8) & 0xff);
  }
  return bytes;
}

TEST(NpzScipy, RowsAggregateFromColumns) {
  const ParsedDataset parsed = parse(from_base64(kFromScipy));
  const auto& edges = narrow(parsed);
  EXPECT_EQ(edges.vertices, 3u);
  EXPECT_THAT(edges.target.span(), ElementsAre(0, 2, 2, 2));
  EXPECT_THAT(edges.source.span(), ElementsAre(2, 0, 1, 2));
  EXPECT_THAT(edges.weight.span(), ElementsAre(1, 2.5, -3, 1));
}

Arrays scipy_arrays() {
  return {{"format", file_of<char>("|S3", "()", {'c', 's', 'r'})},
          {"shape", file_of<std::int64_t>("<i8", "(2,)", {2, 2})},
          {"indptr", file_of<std::int32_t>("<i4", "(3,)", {0, 1, 2})},
          {"indices", file_of<std::int32_t>("<i4", "(2,)", {1, 0})},
          {"data", file_of<std::int8_t>("|i1", "(2,)", {1, 1})}};
}

TEST(NpzScipy, WeightsOfOneAreNone) {
  EXPECT_TRUE(narrow(parse(scipy_arrays())).weight.empty());
  const ParsedDataset weighted =
      parse(with(scipy_arrays(), "data", file_of<std::uint8_t>("|b1", "(2,)", {1, 0})));
  EXPECT_THAT(narrow(weighted).weight.span(), ElementsAre(1, 0));
}

TEST(NpzScipy, RefusesOtherMatrices) {
  const auto error = [](const char* key, const std::string& file) {
    return parse_error(with(scipy_arrays(), key, file));
  };
  EXPECT_THAT(error("format", file_of<char>("|S3", "()", {'d', 'i', 'a'})), HasSubstr(".tocsr()"));
  EXPECT_THAT(error("shape", file_of<std::int64_t>("<i8", "(2,)", {2, 3})),
              HasSubstr("2 x 3 is not square"));
  EXPECT_THAT(error("shape", file_of<std::int64_t>("<i8", "(2,)", {1ll << 40, 1ll << 40})),
              HasSubstr("where (1099511627777,) belongs"));
  EXPECT_THAT(error("indices", file_of<std::int32_t>("<i4", "(2,)", {1, 2})),
              HasSubstr("value 2 is outside 0..1"));
  EXPECT_THAT(error("indptr", file_of<std::int32_t>("<i4", "(3,)", {1, 1, 2})),
              HasSubstr("does not rise"));
  Arrays missing = scipy_arrays();
  missing.erase("data");
  EXPECT_THAT(parse_error(missing), HasSubstr("array data: it is missing"));
}

TEST(NpzZip, FilesOfPyTorchAreTold) {
  EXPECT_THAT(parse_error(zip_of({{"model/data.pkl", "x"}, {"model/data/0", "x"}})),
              HasSubstr("x.npz: archive: it is a pickle, as torch.save writes"));
}

TEST(NpzZip, HostileArchives) {
  const std::string edges = full().at("edge_index");
  const auto error = [&](ZipMember changed) {
    changed.name = "edge_index.npy";
    if (changed.data.empty()) changed.data = edges;
    return parse_error(zip_of({changed}));
  };
  EXPECT_THAT(error({.method = 8, .size = 0xfffffff0u}),
              StartsWith("x.npz: member edge_index.npy: " + std::to_string(edges.size()) +
                         " bytes cannot unpack to the 4294967280 that it promises"));
  EXPECT_THAT(error({.size = 0xfffffff0u}), HasSubstr("cannot unpack"));
  EXPECT_THROW(
      parse(zip_of({{.name = "edge_index.npy", .data = edges, .compressed_size = 0xfffffff0u}})),
      InputError);
  EXPECT_THAT(error({.crc_error = 1}), HasSubstr("CRC"));
  EXPECT_THAT(error({.method = 12}), HasSubstr("neither stored nor deflated"));
  EXPECT_THAT(error({.flags = 1}), HasSubstr("encrypted"));
  EXPECT_THAT(error({.data = "not deflate at all", .method = 8, .size = 100}),
              StartsWith("x.npz: member edge_index.npy: "));
  // Two names for the same bytes, and two members of one name.
  std::vector<ZipMember> overlapping(3, {.name = "edge_index.npy", .data = edges, .offset = 0});
  EXPECT_THROW(parse(zip_of(overlapping)), InputError);
  EXPECT_THROW(parse(zip_of({{"edge_index.npy", edges}, {"edge_index.npy", edges}})), InputError);
  EXPECT_THROW(parse(std::string("PK\x03\x04")), InputError);
  EXPECT_THROW(parse(std::string()), InputError);
}

TEST(NpzDamage, EveryTruncationAndEveryFlip) {
  const auto read = [](const Buffer<std::byte>& bytes) { build(parse_npz(bytes.span(), "x.npz")); };
  for (const std::string& text : {archive_of(full()), from_base64(kFromScipy)}) {
    const auto good = to_bytes(text);
    ASSERT_TRUE(reads(good, read));
    expect_every_truncation_refused(good.span(), read);
    // Data are covered by checksums; a date or a name that is not needed may change.
    EXPECT_GT(count_refused_flips(good.span(), read), 8 * good.size() * 6 / 10);
  }
}

}  // namespace
}  // namespace plait
