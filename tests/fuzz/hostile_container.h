// .plait files with right checksums around any content that the fuzzer's bytes choose: small graphs
// with all that a dataset can have. About every second one is valid.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/graph/build.h"
#include "plait/io/container.h"
#include "plait/io/io.h"
#include "tests/fuzz/chooser.h"

namespace plait {

// Returns a path in memory, if the host has such a file system.
inline std::string fuzz_path(const std::string& ending) {
  static const std::string folder = std::filesystem::is_directory("/dev/shm")
                                        ? "/dev/shm"
                                        : std::filesystem::temp_directory_path().string();
  return fmt::format("{}/plait-fuzz-{}{}", folder, ::getpid(), ending);
}

// A file that is gone when this object is.
class FuzzFile {
 public:
  explicit FuzzFile(const std::string& ending) : path_(fuzz_path(ending)) {}
  ~FuzzFile() { ::unlink(path_.c_str()); }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class HostileDataset {
 public:
  explicit HostileDataset(Chooser& choose) : choose_(choose) {}

  Dataset make() {
    Dataset dataset;
    dataset.name = "fuzz";
    dataset.graph = choose_.one_in(4) ? graph<std::uint64_t>() : graph<std::uint32_t>();
    dataset.symmetric = undirected_ ? !choose_.one_in(8) : choose_.one_in(8);
    vertices_ = dataset.vertices();
    set_features(dataset.features);
    set_graphs(dataset);
    set_labels(dataset);
    if (choose_.one_in(3)) dataset.original_ids = numbers<std::uint64_t>(vertices_, 256);
    if (choose_.one_in(3)) dataset.numbers = permutation();
    return dataset;
  }

 private:
  static constexpr float kFloats[] = {1, 0, -1, .5f, 2, -0.0f, 3e38f, 1e-40f, NAN, INFINITY};

  // Returns a number that is nearly always finite and small.
  float number() { return kFloats[choose_.one_in(16) ? choose_.below(10) : choose_.below(5)]; }

  // Returns `count`, or at times another number.
  std::uint64_t about(std::uint64_t count) {
    return choose_.one_in(32) ? count + choose_.below(3) - (count > 0 ? 1 : 0) : count;
  }

  // Returns a number below `bound`, or at times any number.
  template <class T>
  T id(std::uint64_t bound) {
    if (bound == 0 || choose_.one_in(64))
      return static_cast<T>(std::numeric_limits<T>::max() - choose_.below(256));
    return static_cast<T>(choose_.next() % bound);
  }

  template <class T>
  std::vector<T> numbers(std::uint64_t count, std::uint64_t bound) {
    std::vector<T> all(about(count));
    for (T& one : all) one = id<T>(bound);
    return all;
  }

  // Returns the vertices in another order, nearly always each of them once.
  std::vector<std::uint64_t> permutation() {
    std::vector<std::uint64_t> all(about(vertices_));
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[choose_.next() % i]);
    if (choose_.one_in(16) && !all.empty())
      all[choose_.next() % all.size()] = id<std::uint64_t>(vertices_);
    return all;
  }

  std::vector<float> floats(std::uint64_t count) {
    std::vector<float> all(about(count));
    for (float& one : all) one = number();
    return all;
  }

  template <VertexId V>
  AnyCsr graph() {
    const std::uint64_t vertices = 1 + choose_.below(12);
    undirected_ = choose_.one_in(2);
    const bool weighted = choose_.one_in(2);
    if (undirected_) {
      EdgeList<V> edges{vertices, Buffer<V>(choose_.below(24)), {}, {}};
      edges.target = Buffer<V>(edges.edges());
      if (weighted) edges.weight = Buffer<float>(edges.edges(), .5f);
      for (std::uint64_t e = 0; e < edges.edges(); ++e) {
        edges.source[e] = static_cast<V>(choose_.below(vertices));
        edges.target[e] = static_cast<V>(choose_.below(vertices));
      }
      return build_csr(std::move(edges), {.undirected = true});
    }
    return rows<V>(vertices, weighted);
  }

  // Makes rows that no builder has made.
  template <VertexId V>
  AnyCsr rows(std::uint64_t vertices, bool weighted) {
    const bool sorted = !choose_.one_in(8);
    std::vector<EdgeOffset> offsets{0};
    std::vector<V> neighbours;
    for (std::uint64_t i = 0; i < vertices; ++i) {
      const std::vector<V> row = numbers<V>(choose_.below(5), vertices);
      neighbours.insert(neighbours.end(), row.begin(), row.end());
      if (sorted)
        std::sort(neighbours.end() - static_cast<std::ptrdiff_t>(row.size()), neighbours.end());
      offsets.push_back(neighbours.size());
    }
    if (choose_.one_in(32)) offsets[choose_.next() % offsets.size()] = id<EdgeOffset>(64);
    const std::uint64_t edges = neighbours.size();
    return Csr<V>{std::move(offsets), std::move(neighbours),
                  weighted ? floats(edges) : std::vector<float>()};
  }

  void set_features(Features& features) {
    const std::uint64_t form = choose_.below(4), width = 1 + choose_.below(6);
    if (form == 0) return;
    features.rows = vertices_;
    features.width = width;
    if (form == 1) features.f32 = floats(vertices_ * width);
    if (form == 2) {
      std::vector<BFloat16> values;
      for (const float value : floats(vertices_ * width)) values.push_back(to_bf16(value));
      features.bf16 = std::move(values);
    }
    if (form != 3) return;
    features.sparse = std::get<Csr32>(rows<std::uint32_t>(vertices_, false));
    features.sparse.weights = floats(features.sparse.edges());
    // Columns that rows() takes from the vertices; a matrix may be as wide as it likes.
    features.width = choose_.one_in(8) ? kMaxVertices32 - choose_.below(3) : about(vertices_);
  }

  void set_graphs(Dataset& dataset) {
    if (!choose_.one_in(4)) return;
    dataset.graphs = static_cast<std::uint32_t>(about(1 + choose_.next() % vertices_));
    dataset.graph_ids = numbers<std::uint32_t>(vertices_, dataset.graphs);
  }

  void set_labels(Dataset& dataset) {
    const std::uint64_t examples = dataset.examples(), kind = choose_.below(8);
    const std::int32_t classes = 1 + choose_.below(4);
    if (kind == 0) return;
    dataset.classes = choose_.one_in(32) ? std::numeric_limits<std::int32_t>::max() : classes;
    if (kind <= 5) {
      std::vector<std::int32_t> labels(about(examples));
      for (std::int32_t& label : labels) label = choose_.below(classes + 1u) - 1;
      dataset.labels = std::move(labels);
    }
    if (kind >= 5)
      dataset.label_sets = numbers<std::uint8_t>(examples * static_cast<std::uint64_t>(classes), 2);
    if (choose_.one_in(8)) return;
    dataset.split_count = static_cast<std::uint32_t>(about(1 + choose_.below(2)));
    std::vector<Split> splits;
    for (const auto part : numbers<std::uint8_t>(examples * dataset.split_count, 4))
      splits.push_back(static_cast<Split>(part));
    dataset.splits = std::move(splits);
  }

  Chooser& choose_;
  bool undirected_ = false;
  std::uint64_t vertices_ = 0;
};

// Returns the dataset that is read back after a hostile writer has written it; nothing if refused.
inline std::optional<Dataset> read_hostile(Chooser& choose) {
  const FuzzFile file(".plait");
  ReadOptions options;
  options.build = {choose.one_in(4), choose.one_in(4), choose.one_in(4)};
  options.drop_weights = choose.one_in(4);
  {
    const Dataset dataset = HostileDataset(choose).make();
    AtomicFile out(file.path());
    write_container(dataset, out);
    out.commit();
  }
  try {
    return read_dataset(file.path(), options);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace plait
