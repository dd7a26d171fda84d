// For tests of .plait containers: datasets with every section and form, and their files' bytes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "plait/io/container.h"
#include "tests/io/damage.h"

namespace plait {

template <class T>
using List = std::vector<T>;

// Makes three vertices and four edges, nothing else.
template <VertexId V>
inline Dataset bare() {
  Dataset data;
  data.name = "triangle";
  data.graph = Csr<V>{List<EdgeOffset>{0, 1, 3, 4}, List<V>{1, 0, 2, 1}, {}};
  return data;
}

enum Part { kWeights = 1, kLabels = 2, kSplits = 4, kIds = 8, kWide = 16, kSymmetric = 32 };

inline Dataset with_parts(int parts) {
  Dataset data = parts & kWide ? bare<std::uint64_t>() : bare<std::uint32_t>();
  data.symmetric = parts & kSymmetric;
  if (parts & kWeights)
    std::visit([](auto& graph) { graph.weights = List<float>{1, 1, -.5, -.5}; }, data.graph);
  if (parts & kLabels) {
    data.labels = List<std::int32_t>{0, -1, 4};
    data.classes = 6;
  }
  if (parts & kSplits) {
    data.splits = List<Split>{Split::train, Split::none, Split::test,
                              Split::test,  Split::none, Split::validation};
    data.split_count = 2;
  }
  if (parts & kIds) data.original_ids = List<std::uint64_t>{7, ~std::uint64_t{0}, 0};
  return data;
}

enum class Form { none, f32, bf16, sparse, sparse_empty };

inline Features features_of(Form form) {
  Features features;
  if (form == Form::none) return features;
  features.rows = 3;
  features.width = 2;
  if (form == Form::f32) features.f32 = List<float>{1, 2, 3, 4, 5, -6};
  if (form == Form::bf16)
    features.bf16 = List<BFloat16>{to_bf16(1), to_bf16(2), {}, to_bf16(-1), {}, to_bf16(.5)};
  if (form == Form::sparse)
    features.sparse = {List<EdgeOffset>{0, 0, 2, 3}, List<std::uint32_t>{1, 0, 1},
                       List<float>{.5, 2, 3}};
  if (form == Form::sparse_empty) features.sparse = {List<EdgeOffset>{0, 0, 0, 0}, {}, {}};
  return features;
}

inline Buffer<std::byte> written(const Dataset& data) {
  const std::string path = temporary_path("plait-container-test.plait");
  AtomicFile file(path);
  write_container(data, file);
  file.commit();
  auto bytes = to_bytes(MappedFile::open(path)->text());
  std::filesystem::remove(path);
  return bytes;
}

inline Dataset read(const Buffer<std::byte>& bytes) {
  return read_container(nullptr, bytes.span(), "x.plait");
}

// --- what only versions 2 and 3 have ---

inline Dataset with_label_sets() {
  Dataset data = bare<std::uint32_t>();
  data.label_sets = List<std::uint8_t>{0, 1, 1, 1, 0, 0};
  data.classes = 2;
  return data;
}

inline Dataset set_of_graphs() {
  Dataset data = bare<std::uint32_t>();
  data.graph_ids = List<std::uint32_t>{1, 1, 0};
  data.graphs = 2;
  data.labels = List<std::int32_t>{3, -1};
  data.classes = 4;
  data.splits = List<Split>{Split::train, Split::test};
  data.split_count = 1;
  return data;
}

inline Dataset renumbered_triangle() {
  Dataset data = with_parts(kLabels);
  data.numbers = List<std::uint64_t>{2, 0, 1};
  return data;
}

}  // namespace plait
