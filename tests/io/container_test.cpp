// .plait containers: every section and form there and back.
#include "plait/io/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/io/container_data.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

using testing::ElementsAre;

template <class T>
void expect_same_bytes(const Array<T>& a, const Array<T>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_TRUE(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <VertexId V>
void expect_same_csr(const Csr<V>& a, const Csr<V>& b) {
  expect_same_bytes(a.offsets, b.offsets);
  expect_same_bytes(a.neighbours, b.neighbours);
  expect_same_bytes(a.weights, b.weights);
}

void expect_same(const Dataset& a, const Dataset& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.symmetric, b.symmetric);
  ASSERT_EQ(a.graph.index(), b.graph.index());
  std::visit(
      [&](const auto& graph) {
        expect_same_csr(graph, std::get<std::decay_t<decltype(graph)>>(b.graph));
      },
      a.graph);
  EXPECT_EQ(a.features.rows, b.features.rows);
  EXPECT_EQ(a.features.width, b.features.width);
  EXPECT_EQ(a.features.form(), b.features.form());
  expect_same_bytes(a.features.f32, b.features.f32);
  expect_same_bytes(a.features.bf16, b.features.bf16);
  expect_same_csr(a.features.sparse, b.features.sparse);
  expect_same_bytes(a.labels, b.labels);
  EXPECT_EQ(a.classes, b.classes);
  expect_same_bytes(a.splits, b.splits);
  EXPECT_EQ(a.split_count, b.split_count);
  expect_same_bytes(a.original_ids, b.original_ids);
}

TEST(Container, RoundTripsOfEveryCombination) {
  for (int parts = 0; parts < 64; ++parts) {
    Dataset data = with_parts(parts);
    data.features = features_of(static_cast<Form>(parts % 5));
    SCOPED_TRACE(parts);
    const auto bytes = written(data);
    expect_same(data, read(bytes));
  }
}

TEST(Container, NumbersBeforeRenumbering) {
  const auto bytes = written(renumbered_triangle());
  const Dataset found = read(bytes);
  expect_same(renumbered_triangle(), found);
  EXPECT_THAT(found.numbers.span(), ElementsAre(2, 0, 1));
  EXPECT_EQ(found.number(0), 2u);
}

TEST(Container, LabelSetsAndSetsOfGraphs) {
  const auto sets_bytes = written(with_label_sets());
  const Dataset sets = read(sets_bytes);
  expect_same(with_label_sets(), sets);
  expect_same_bytes(sets.label_sets, with_label_sets().label_sets);
  EXPECT_EQ(sets.task(), TaskKind::multi_label);
  const auto graphs_bytes = written(set_of_graphs());
  const Dataset graphs = read(graphs_bytes);
  expect_same(set_of_graphs(), graphs);
  expect_same_bytes(graphs.graph_ids, set_of_graphs().graph_ids);
  EXPECT_EQ(graphs.task(), TaskKind::graph_label);
  EXPECT_EQ(graphs.examples(), 2u);
}

TEST(Container, MapsAFileAndKeepsIt) {
  const std::string path = temporary_path("plait-container-map.plait");
  {
    AtomicFile file(path);
    write_container(with_parts(kWeights), file);
    file.commit();
  }
  auto file = MappedFile::open(path);
  std::filesystem::remove(path);
  const std::span<const std::byte> map = file->bytes();
  const Dataset data = read_container(file, map, path);
  file.reset();
  const auto& graph = std::get<Csr32>(data.graph);
  const auto* at = reinterpret_cast<const std::byte*>(graph.neighbours.data());
  EXPECT_GE(at, map.data());
  EXPECT_LT(at, map.data() + map.size());
  EXPECT_THAT(graph.neighbours.span(), ElementsAre(1, 0, 2, 1));
}

TEST(Container, NamesAreOneLine) {
  Dataset data = bare<std::uint32_t>();
  data.name = "gr\xc3\xa4ph\n\x1b[31m\xc2\x9b\xe9";
  EXPECT_EQ(read(written(data)).name, "gr\xc3\xa4ph??[31m??");
  data.name = "";
  EXPECT_EQ(read(written(data)).name, "");
  data.name = std::string(10000, 'x');
  EXPECT_EQ(read(written(data)).name, std::string(4096, 'x'));
}

TEST(Container, RefusesToWriteOrReadNothing) {
  const std::string path = temporary_path("plait-container-none.plait");
  AtomicFile file(path);
  EXPECT_THROW(write_container(Dataset{}, file), Error);
  EXPECT_THROW(read(Buffer<std::byte>()), InputError);
}

}  // namespace
}  // namespace plait
