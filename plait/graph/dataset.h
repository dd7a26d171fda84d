// A graph with what is known of its vertices: the content of a .plait file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/bf16.h"
#include "plait/graph/csr.h"

namespace plait {

// Vertex features: rows x width, row major, in one of three forms; none when width is 0.
struct Features {
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  Array<float> f32;      // dense single precision, or empty
  Array<BFloat16> bf16;  // dense bfloat16, or empty
  Csr32 sparse;          // rows of (column, value): `neighbours` are columns, below width

  bool empty() const { return width == 0; }
  bool is_sparse() const { return !sparse.offsets.empty(); }
  const char* form() const { return is_sparse() ? "sparse" : !bf16.empty() ? "bf16" : "fp32"; }
};

enum class Split : std::uint8_t { none = 0, train = 1, validation = 2, test = 3 };

struct Dataset {
  std::string name;
  AnyCsr graph;
  bool symmetric = false;  // every edge has its reverse, of the same weight
  Features features;
  Array<std::int32_t> labels;         // one a vertex, -1 where unknown; or empty
  std::int32_t classes = 0;           // labels are below this
  Array<Split> splits;                // split_count x vertices; or empty
  std::uint32_t split_count = 0;      // alternative splits of the same vertices
  Array<std::uint64_t> original_ids;  // what the source called vertex i; empty: i itself

  std::uint64_t vertices() const { return vertex_count(graph); }
  EdgeOffset edges() const { return edge_count(graph); }
};

}  // namespace plait
