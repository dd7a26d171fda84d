// A dataset of a file as tensors by name.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/Dict.h>

#include <string>

#include "plait/graph/dataset.h"

namespace plait {

// Returns copies of the dataset's arrays:
//   num_nodes      int64, a scalar
//   edge_index     int64, 2 x E: sources, then targets; by target, then source
//   edge_weight    float32, E                           only if the graph has weights
//   x              float32, N x width                   only if there are features
//   y              int64, N; -1 where unknown           only if there are labels; N x classes of 0
//                                                       and 1 where a vertex has several
//   graph_id       int64, N                             only in a set of graphs; y and the masks
//                                                       then have one entry per graph
//   train_mask, val_mask, test_mask   bool, N, or K x N where there are K > 1 alternative splits
//   original_ids   int64, N                             only if the source had other ids
// Throws DoesNotFitError before memory is taken.
c10::Dict<std::string, at::Tensor> tensors_of(const Dataset& dataset);

// Returns the same without edge_index and x, which are most of a dataset.
c10::Dict<std::string, at::Tensor> small_tensors_of(const Dataset& dataset);

// The edges by target, int64: edges into target i come from row[colptr[i]], ..., row[colptr[i + 1]
// - 1].
struct EdgesByTarget {
  at::Tensor row, colptr;
};
// Returns a copy of the graph in this form. Throws DoesNotFitError before memory is taken.
EdgesByTarget edges_by_target(const AnyCsr& graph);

}  // namespace plait
