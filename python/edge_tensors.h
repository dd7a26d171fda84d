// Edges as tensors of Python: checked, and turned into an edge list.
//
// edge_index is 2 x E, any integer type, on the CPU or a GPU: column e is a message from
// edge_index[0][e] to edge_index[1][e], as in PyG. edge_weight holds E finite float32 numbers.
#pragma once

#include <ATen/ATen.h>

#include <optional>

#include "plait/graph/edge_list.h"

namespace plait {

struct EdgeTensors {
  at::Tensor index;
  std::int64_t vertices = 0;
  std::optional<at::Tensor> weight;
};

// Throws UsageError that names the tensor, the place in it, the value and the allowed range.
void check_edges(const EdgeTensors& edges);

// Checks the edges first, as check_edges().
AnyEdgeList edge_list_of(const EdgeTensors& edges);

// Returns where each of `rows` rows begins among edges, and the end, rows + 1 int64 numbers, from
// the edges' rows in ascending order (int32 or int64).
at::Tensor offsets_of(const at::Tensor& sorted, std::int64_t rows);

}  // namespace plait
