// .npz written by Plait, and read again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/io/npz_archive.h"

namespace plait {
namespace {

using testing::ElementsAre;

Dataset random_dataset(int seed) {
  Dataset data = build(parse(full()));
  if (seed & 1) data.features = {};
  if (seed & 2) data.labels = {}, data.classes = 0;
  if (seed & 4) data.splits = {}, data.split_count = 0;
  if (seed & 8) data.original_ids = {};
  if (seed & 16) {
    data.splits = std::vector<Split>{Split::none, Split::train, Split::test,  Split::none,
                                     Split::test, Split::none,  Split::train, Split::validation};
    data.split_count = 2;
  }
  return data;
}

template <class T>
std::vector<T> list(const Array<T>& array) {
  return {array.begin(), array.end()};
}

void expect_equal(const Dataset& a, const Dataset& b) {
  const auto& graph = std::get<Csr32>(a.graph);
  const auto& other = std::get<Csr32>(b.graph);
  EXPECT_EQ(list(graph.offsets), list(other.offsets));
  EXPECT_EQ(list(graph.neighbours), list(other.neighbours));
  EXPECT_EQ(list(graph.weights), list(other.weights));
  EXPECT_EQ(a.features.rows, b.features.rows);
  EXPECT_EQ(a.features.width, b.features.width);
  EXPECT_EQ(list(a.features.f32), list(b.features.f32));
  EXPECT_EQ(list(a.features.sparse.offsets), list(b.features.sparse.offsets));
  EXPECT_EQ(list(a.features.sparse.neighbours), list(b.features.sparse.neighbours));
  EXPECT_EQ(list(a.features.sparse.weights), list(b.features.sparse.weights));
  EXPECT_EQ(list(a.labels), list(b.labels));
  EXPECT_EQ(list(a.label_sets), list(b.label_sets));
  EXPECT_EQ(list(a.graph_ids), list(b.graph_ids));
  EXPECT_EQ(a.graphs, b.graphs);
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_EQ(list(a.splits), list(b.splits));
  EXPECT_EQ(a.split_count, b.split_count);
  EXPECT_EQ(list(a.original_ids), list(b.original_ids));
}

std::string written(const Dataset& data, bool compress) {
  const std::string path = temporary_path("plait-npz-test.npz");
  AtomicFile file(path);
  write_npz(data, file, compress);
  file.commit();
  const std::string text(MappedFile::open(path)->text());
  std::filesystem::remove(path);
  return text;
}

TEST(NpzWrite, RoundTripsOfEveryCombination) {
  for (int seed = 0; seed < 32; ++seed) {
    const Dataset data = random_dataset(seed);
    for (const bool compress : {false, true}) {
      const std::string text = written(data, compress);
      EXPECT_EQ(text, written(data, compress)) << "the same bytes every time";
      expect_equal(data, build(parse(text)));
    }
  }
}

TEST(NpzWrite, SparseAndHalfPrecisionFeatures) {
  Dataset data = random_dataset(31 & ~16);
  data.features.rows = 4;
  data.features.width = 9;
  data.features.sparse = {std::vector<EdgeOffset>{0, 2, 2, 3, 3},
                          std::vector<std::uint32_t>{8, 1, 0}, std::vector<float>{1, 2, 3}};
  expect_equal(data, build(parse(written(data, true))));
  data.features = {.rows = 4, .width = 1, .f32 = {}, .bf16 = {}, .sparse = {}};
  data.features.bf16 = std::vector<BFloat16>{to_bf16(1), to_bf16(-2), to_bf16(.5), to_bf16(0)};
  EXPECT_THAT(build(parse(written(data, true))).features.f32.span(), ElementsAre(1, -2, .5, 0));
}

TEST(NpzWrite, LabelSetsAndSetsOfGraphs) {
  Dataset data = random_dataset(1 + 8 + 16);  // two splits
  data.labels = {};
  data.label_sets = Bytes8{0, 1, 1, 1, 0, 0, 1, 0};
  data.classes = 2;
  expect_equal(data, build(parse(written(data, true))));
  data.label_sets = Bytes8{0, 1, 1, 1};
  data.classes = 1;
  expect_equal(data, build(parse(written(data, true))));
  for (const bool labelled : {true, false}) {
    Dataset set = build(parse(graphs()));
    set.splits = std::vector<Split>{Split::test, Split::train, Split::none};
    set.split_count = 1;
    if (!labelled) set.labels = {}, set.classes = 0;
    expect_equal(set, build(parse(written(set, true))));
  }
}

TEST(NpzWrite, WideIdsBecomeAsNarrowAsTheyCan) {
  Dataset data;
  data.graph = Csr64{std::vector<EdgeOffset>{0, 1, 2}, std::vector<std::uint64_t>{1, 0}, {}};
  const Dataset again = build(parse(written(data, true)));
  EXPECT_THAT(std::get<Csr32>(again.graph).neighbours.span(), ElementsAre(1, 0));
}

}  // namespace
}  // namespace plait
