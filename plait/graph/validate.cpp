#include "plait/graph/validate.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "plait/base/array.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kGrain = std::size_t{1} << 18;

// The smallest index for which `bad` holds, or `size`. Parallel; the answer does not depend on the
// number of threads.
template <class Bad>
std::size_t first_bad(std::size_t size, Bad bad, std::size_t grain = kGrain) {
  std::atomic<std::size_t> first{size};
  parallel_blocks(size, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end && i < first.load(std::memory_order_relaxed); ++i) {
      if (!bad(i)) continue;
      std::size_t seen = first.load();
      while (i < seen && !first.compare_exchange_weak(seen, i)) {
      }
      return;
    }
  });
  return first;
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
      fail(what, fmt::format("has {} entries where one for each {} makes {}", is, per, wanted),
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
    const auto i =
        first_bad(values.size(), [&](std::size_t k) { return !std::isfinite(number(values[k])); });
    if (i < values.size())
      fail(fmt::format("{}, entry {}", what, i),
           fmt::format("value {} is not a finite number", number(values[i])),
           "replace or drop what is not finite");
  }

  template <class T>
  void below(const char* what, std::span<const T> values, std::uint64_t bound) const {
    const auto i = first_bad(values.size(), [&](std::size_t k) { return values[k] >= bound; });
    if (i < values.size())
      fail(fmt::format("{}, entry {}", what, i),
           bound == 0 ? fmt::format("id {} in a graph without vertices", values[i])
                      : fmt::format("id {} is outside 0..{}", values[i], bound - 1),
           "correct the id or the number of vertices");
  }

  void offsets(const char* what, std::span<const EdgeOffset> o, std::uint64_t edges) const {
    if (o.empty() || o[0] != 0)
      fail(what, "does not begin with 0", "write it anew from its source");
    const auto i = first_bad(o.size() - 1, [&](std::size_t k) { return o[k] > o[k + 1]; });
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
    const auto i = first_bad(labels.size(), [&](std::size_t k) {
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
  const auto i = first_bad(sets.size(), [&](std::size_t k) { return sets[k] > 1; });
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
  const auto i = first_bad(dataset.splits.size(),
                           [&](std::size_t k) { return dataset.splits[k] > Split::test; });
  if (i < dataset.splits.size())
    check.fail(fmt::format("split of {} {}", example, i % examples),
               fmt::format("value {} is outside 0..3", static_cast<int>(dataset.splits[i])),
               "use 0 none, 1 train, 2 validation, 3 test");
}

}  // namespace

void validate(const Dataset& dataset, const std::string& file) {
  const Checker check(file);
  const std::uint64_t vertices = dataset.vertices();
  if (vertices == 0)
    check.fail("graph", "has no vertices", "give a graph with at least one vertex");
  std::visit([&](const auto& graph) { check.csr("neighbour", graph, vertices); }, dataset.graph);
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
}

namespace {

// The columns of a graph from `begin` to `end`, checked entry by entry. Rows ascend, and so do the
// rows of the entries of a column: they must come in the order in which the row of the same number
// lists them, so that a cursor a row finds them without a search. `go_on` is false once any block
// of columns has found a difference.
template <VertexId V>
bool columns_match(const Csr<V>& graph, std::uint64_t begin, std::uint64_t end,
                   const std::atomic<bool>& go_on) {
  Buffer<EdgeOffset> cursors(end - begin);
  std::copy_n(graph.offsets.begin() + static_cast<std::ptrdiff_t>(begin), end - begin,
              cursors.begin());
  for (std::uint64_t i = 0; i < graph.vertices() && go_on.load(std::memory_order_relaxed); ++i) {
    const auto row = graph.row(i);
    auto entry = std::lower_bound(row.begin(), row.end(), begin);
    for (; entry != row.end() && *entry < end; ++entry) {
      const EdgeOffset reverse = cursors[*entry - begin]++;
      const auto e = graph.offsets[i] + static_cast<EdgeOffset>(entry - row.begin());
      if (reverse == graph.offsets[*entry + std::uint64_t{1}] || graph.neighbours[reverse] != i ||
          graph.weight(reverse) != graph.weight(e))
        return false;
    }
  }
  for (std::uint64_t j = begin; j < end; ++j)
    if (cursors[j - begin] != graph.offsets[j + 1]) return false;
  return true;
}

}  // namespace

bool is_symmetric(const AnyCsr& any) {
  return std::visit(
      [](const auto& graph) {
        // A block of columns a thread, with as many edges each.
        const auto blocks = static_cast<std::uint64_t>(thread_count());
        const auto bound = [&](std::uint64_t block) {
          if (block == blocks) return graph.vertices();
          const auto at = std::lower_bound(graph.offsets.begin(), graph.offsets.end() - 1,
                                           graph.edges() / blocks * block);
          return static_cast<std::uint64_t>(at - graph.offsets.begin());
        };
        std::atomic<bool> symmetric{true};
        parallel_for(blocks, [&](std::size_t block) {
          if (!columns_match(graph, block == 0 ? 0 : bound(block), bound(block + 1), symmetric))
            symmetric = false;
        });
        return symmetric.load();
      },
      any);
}

std::optional<RowEntry> find_one_way_edge(const AnyCsr& any) {
  if (is_symmetric(any)) return std::nullopt;
  return std::visit(
      [](const auto& graph) -> std::optional<RowEntry> {
        // Where the first such edge of row i is in it, or the size of the row.
        const auto first_unmatched = [&](std::size_t i) {
          const auto row = graph.row(i);
          for (std::size_t k = 0; k < row.size(); ++k) {
            const auto reverse = graph.row(row[k]);
            const auto [low, high] = std::equal_range(reverse.begin(), reverse.end(),
                                                      static_cast<decltype(row[k] + 0)>(i));
            const auto first = std::lower_bound(row.begin(), row.end(), row[k]);
            const auto nth = (row.begin() + static_cast<std::ptrdiff_t>(k)) - first;
            if (high - low <= nth) return k;
            const EdgeOffset back =
                graph.offsets[row[k]] + static_cast<EdgeOffset>(low - reverse.begin() + nth);
            if (graph.weight(graph.offsets[i] + k) != graph.weight(back)) return k;
          }
          return row.size();
        };
        const std::size_t i = first_bad(
            graph.vertices(), [&](std::size_t k) { return first_unmatched(k) < graph.degree(k); },
            std::size_t{1} << 10);
        if (i == graph.vertices()) return std::nullopt;
        return RowEntry{i, graph.row(i)[first_unmatched(i)]};
      },
      any);
}

}  // namespace plait
