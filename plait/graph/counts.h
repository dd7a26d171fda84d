// The counts of a dataset, which its file may state before its arrays are read.
#pragma once

#include <cstdint>

namespace plait {

struct GraphCounts {
  std::uint64_t vertices = 0, edges = 0;
  bool weighted = false;
  bool symmetric = false;
  bool wide_ids = false;       // 64-bit ids of vertices
  std::uint64_t width = 0;     // of features; 0: none
  bool sparse = false;         // features are sparse
  std::int32_t classes = 0;    // of labels
  bool set_of_graphs = false;  // labels are of graphs

  friend bool operator==(const GraphCounts&, const GraphCounts&) = default;
};

}  // namespace plait
