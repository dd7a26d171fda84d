// A graph with its features, labels and splits: the content of a .plait file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/bf16.h"
#include "plait/base/dtype.h"
#include "plait/graph/csr.h"

namespace plait {

// Vertex features: rows x width, row major, in one of three forms; none when width is 0.
struct Features {
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  Array<float> f32;      // dense single precision, or empty
  Array<BFloat16> bf16;  // dense bfloat16, or empty
  Csr32 sparse;          // rows of (column, value): `neighbours` are columns, below width

  // Tell which of the forms the features have; type() is of dense ones, form() is for messages.
  bool empty() const { return width == 0; }
  bool is_sparse() const { return !sparse.offsets.empty(); }
  DType type() const { return bf16.empty() ? DType::f32 : DType::bf16; }
  std::string_view form() const { return is_sparse() ? "sparse" : to_string(type()); }
};

// The kind of labels, and so of the task that a model learns.
enum class TaskKind {
  single_label,  // a class for each vertex
  multi_label,   // any number of classes for each vertex
  graph_label,   // a class for each of a set of graphs
};

// An array as it was read from its file, with the checksum (base/checksum.h) that the reader has
// verified.
struct CheckedArray {
  std::span<const std::byte> bytes;
  std::uint64_t checksum = 0;
};

// The part of training that an example belongs to.
enum class Split : std::uint8_t { none = 0, train = 1, validation = 2, test = 3 };

// A graph with everything that is known of its vertices. Copies share the arrays.
struct Dataset {
  std::string name;
  AnyCsr graph;
  bool symmetric = false;  // every edge has its reverse, of the same weight
  Features features;
  // Labels and splits belong to examples: vertices, or graphs in a set of graphs.
  Array<std::int32_t> labels;         // one per example, -1 if unknown; or empty
  Array<std::uint8_t> label_sets;     // or sets of labels: examples x classes of 0 and 1; or empty
  std::int32_t classes = 0;           // labels are below this
  Array<Split> splits;                // split_count x examples; or empty
  std::uint32_t split_count = 0;      // alternative splits of the same examples
  Array<std::uint32_t> graph_ids;     // in a set of graphs, the graph of each vertex; or empty
  std::uint32_t graphs = 0;           // graph ids are below this
  Array<std::uint64_t> original_ids;  // ids of the vertices in the source; empty: the same
  // In a renumbered graph (renumber.h), the number that each vertex had before; or empty: the same.
  // Files and outputs that name vertices by their number mean this one, and random numbers are
  // keyed by it.
  Array<std::uint64_t> numbers;
  std::vector<CheckedArray> checked;  // the arrays above that came with a checksum

  // Numbers of vertices and edges of the graph, and of examples; example() is the word for one.
  std::uint64_t vertices() const { return vertex_count(graph); }
  EdgeOffset edges() const { return edge_count(graph); }
  bool is_set_of_graphs() const { return graphs > 0; }
  std::uint64_t examples() const { return is_set_of_graphs() ? graphs : vertices(); }
  const char* example() const { return is_set_of_graphs() ? "graph" : "vertex"; }
  // Returns the number that a vertex had before it was renumbered.
  std::uint64_t number(std::uint64_t vertex) const {
    return numbers.empty() ? vertex : numbers[vertex];
  }
  // Returns the task that the labels set.
  TaskKind task() const {
    if (is_set_of_graphs()) return TaskKind::graph_label;
    return label_sets.empty() ? TaskKind::single_label : TaskKind::multi_label;
  }
};

}  // namespace plait
