#include "plait/graph/validate.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/graph/renumber.h"

namespace plait {
namespace {

constexpr std::size_t kValueGrain = std::size_t{1} << 18;
constexpr std::size_t kCheckedRowGrain = std::size_t{1} << 14;

// Returns the first entry that is less than the one before in its row, or the number of entries.
template <VertexId V>
EdgeOffset first_descent(const Csr<V>& graph) {
  const auto falls = [&](EdgeOffset e) { return graph.neighbours[e] < graph.neighbours[e - 1]; };
  const auto find = [&](std::size_t i) {
    EdgeOffset e = graph.offsets[i] + 1;
    while (e < graph.offsets[i + 1] && !falls(e)) ++e;
    return e;
  };
  const std::size_t row = first_where(graph.vertices(), kCheckedRowGrain, [&](std::size_t i) {
    return find(i) < graph.offsets[i + 1];
  });
  return row == graph.vertices() ? graph.edges() : find(row);
}

class Checker {
 public:
  explicit Checker(const std::string& file) : file_(file) {}

  [[noreturn]] void fail(const std::string& place, const std::string& problem,
                         const std::string& remedy) const {
    throw InputError(file_, place, problem, remedy);
  }

  void size(const char* what, std::uint64_t is, std::uint64_t wanted, const char* per) const {
    if (is != wanted)
      fail(what, fmt::format("has {} entries, but one for each {} makes {}", is, per, wanted),
           "write it anew from its source");
  }

  template <class T>
  void finite(const char* what, std::span<const T> values) const {
    const auto number = [](T v) {
      if constexpr (std::is_same_v<T, BFloat16>)
        return to_float(v);
      else
        return v;
    };
    const auto i = first_where(values.size(), kValueGrain,
                               [&](std::size_t k) { return !std::isfinite(number(values[k])); });
    if (i < values.size())
      fail(fmt::format("{}, entry {}", what, i),
           fmt::format("value {} is not a finite number", number(values[i])),
           "replace or drop such values");
  }

  template <class T>
  void below(const char* what, std::span<const T> values, std::uint64_t bound) const {
    const auto i =
        first_where(values.size(), kValueGrain, [&](std::size_t k) { return values[k] >= bound; });
    if (i < values.size())
      fail(fmt::format("{}, entry {}", what, i),
           bound == 0 ? fmt::format("id {} in a graph without vertices", values[i])
                      : fmt::format("id {} is outside 0..{}", values[i], bound - 1),
           "correct the id or the number of vertices");
  }

  void offsets(const char* what, std::span<const EdgeOffset> o, std::uint64_t edges) const {
    if (o.empty() || o[0] != 0)
      fail(what, "does not begin with 0", "write it anew from its source");
    const auto i =
        first_where(o.size() - 1, kValueGrain, [&](std::size_t k) { return o[k] > o[k + 1]; });
    if (i < o.size() - 1)
      fail(fmt::format("{}, entry {}", what, i + 1),
           fmt::format("value {} is less than the one before, {}", o[i + 1], o[i]),
           "offsets must not decrease");
    if (o.back() != edges)
      fail(fmt::format("{}, last entry", what),
           fmt::format("value {} is not the number of entries, {}", o.back(), edges),
           "write it anew from its source");
  }

  template <VertexId V>
  void csr(const char* what, const Csr<V>& graph, std::uint64_t bound) const {
    offsets(fmt::format("{} offsets", what).c_str(), graph.offsets, graph.edges());
    below(fmt::format("{} list", what).c_str(), graph.neighbours.span(), bound);
    if (graph.weighted()) {
      size("edge weights", graph.weights.size(), graph.edges(), "edge");
      finite("edge weights", graph.weights.span());
    }
  }

  template <VertexId V>
  void sorted(const char* what, const Csr<V>& graph) const {
    if (rows_are_sorted(graph)) return;
    const EdgeOffset e = first_descent(graph);
    fail(fmt::format("{}, entry {}", what, e),
         fmt::format("id {} follows {} in a row, which must ascend", graph.neighbours[e],
                     graph.neighbours[e - 1]),
         "write it anew from its source");
  }

 private:
  const std::string& file_;
};

void validate_features(const Features& features, std::uint64_t vertices, const Checker& check) {
  check.size("features", features.rows, vertices, "vertex");
  if (features.is_sparse()) {
    check.size("sparse features", features.sparse.vertices(), vertices, "vertex");
    check.csr("feature column", features.sparse, features.width);
    check.size("sparse feature values", features.sparse.weights.size(), features.sparse.edges(),
               "stored column");
  } else {
    check.size("features", std::max(features.f32.size(), features.bf16.size()),
               features.rows * features.width, "vertex and column");
    check.finite("features", features.f32.span());
    check.finite("features", features.bf16.span());
  }
}

void validate_labels(const Dataset& dataset, const Checker& check) {
  const Array<std::int32_t>& labels = dataset.labels;
  const Array<std::uint8_t>& sets = dataset.label_sets;
  const auto classes = static_cast<std::uint64_t>(dataset.classes);
  if (!labels.empty()) {
    check.size("labels", labels.size(), dataset.examples(), dataset.example());
    const auto i = first_where(labels.size(), kValueGrain, [&](std::size_t k) {
      return labels[k] < -1 || labels[k] >= dataset.classes;
    });
    if (i < labels.size())
      check.fail(fmt::format("label of {} {}", dataset.example(), i),
                 fmt::format("value {} is outside -1..{}", labels[i], dataset.classes - 1),
                 "use -1 for an unknown label and 0.. for classes");
  }
  if (sets.empty()) return;
  if (!labels.empty() || dataset.is_set_of_graphs())
    check.fail("label sets", "are there beside single labels or graph ids",
               "keep one kind of labels");
  check.size("label sets", sets.size(), dataset.examples() * classes, "vertex and class");
  const auto i = first_where(sets.size(), kValueGrain, [&](std::size_t k) { return sets[k] > 1; });
  if (i < sets.size())
    check.fail(fmt::format("label sets, vertex {}, class {}", i / classes, i % classes),
               fmt::format("value {} is outside 0..1", sets[i]), "use 1 for each label");
}

void validate_splits(const Dataset& dataset, const Checker& check) {
  if (dataset.splits.empty()) return;
  const std::uint64_t examples = dataset.examples();
  const char* const example = dataset.example();
  check.size("splits", dataset.splits.size(), examples * dataset.split_count,
             fmt::format("{} of every split", example).c_str());
  const auto i = first_where(dataset.splits.size(), kValueGrain,
                             [&](std::size_t k) { return dataset.splits[k] > Split::test; });
  if (i < dataset.splits.size())
    check.fail(fmt::format("split of {} {}", example, i % examples),
               fmt::format("value {} is outside 0..3", static_cast<int>(dataset.splits[i])),
               "use 0 none, 1 train, 2 validation, 3 test");
}

void validate_numbers(const Dataset& dataset, const Checker& check) {
  const Array<std::uint64_t>& numbers = dataset.numbers;
  check.size("numbers before renumbering", numbers.size(), dataset.vertices(), "vertex");
  const std::uint64_t i = first_no_permutation(numbers);
  if (i < numbers.size())
    check.fail(fmt::format("number of vertex {} before renumbering", i),
               numbers[i] < numbers.size()
                   ? fmt::format("value {} is also that of a vertex before it", numbers[i])
                   : fmt::format("value {} is outside 0..{}", numbers[i], numbers.size() - 1),
               "give every number once");
}

}  // namespace

void validate(const Dataset& dataset, const std::string& file) {
  const Timed timed("validate");
  const Checker check(file);
  const std::uint64_t vertices = dataset.vertices();
  if (vertices == 0)
    check.fail("graph", "has no vertices", "give a graph with at least one vertex");
  std::visit(
      [&](const auto& graph) {
        check.csr("neighbour", graph, vertices);
        check.sorted("neighbour list", graph);
      },
      dataset.graph);
  if (!dataset.features.empty()) validate_features(dataset.features, vertices, check);
  if (dataset.is_set_of_graphs() || !dataset.graph_ids.empty()) {
    check.size("graph ids", dataset.graph_ids.size(), vertices, "vertex");
    check.below("graph ids", dataset.graph_ids.span(), dataset.graphs);
    if (dataset.graphs > vertices)
      check.fail("graph ids",
                 fmt::format("{} graphs are more than {} vertices", dataset.graphs, vertices),
                 "number the graphs without gaps");
  }
  validate_labels(dataset, check);
  validate_splits(dataset, check);
  if (!dataset.original_ids.empty())
    check.size("original ids", dataset.original_ids.size(), vertices, "vertex");
  if (!dataset.numbers.empty()) validate_numbers(dataset, check);
}

// Tells whether neighbours descend only where a row begins. Counting both kinds of places takes no
// branches; a loop over rows would be slowed by wrong guesses of where short rows end.
template <VertexId V>
bool rows_are_sorted(const Csr<V>& graph) {
  std::atomic<bool> sorted{true};
  parallel_blocks(graph.vertices(), kCheckedRowGrain, [&](std::size_t begin, std::size_t end) {
    const EdgeOffset first = graph.offsets[begin], last = graph.offsets[end];
    const V* const neighbours = graph.neighbours.data();
    const auto falls = [&](EdgeOffset e) { return neighbours[e] < neighbours[e - 1]; };
    std::uint64_t descents = 0;
    for (EdgeOffset e = first + 1; e < last; ++e) descents += falls(e);
    for (std::size_t i = begin + 1; i < end; ++i) {
      const EdgeOffset e = graph.offsets[i];
      if (e > first && e < graph.offsets[i + 1]) descents -= falls(e);
    }
    if (descents != 0) sorted = false;
  });
  return sorted;
}

template bool rows_are_sorted(const Csr32&);
template bool rows_are_sorted(const Csr64&);

}  // namespace plait
