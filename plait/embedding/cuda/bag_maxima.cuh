// Gradients of maxima of bags on GPUs (embedding/bag_maxima.h): sums by row of a table, whose edges
// read rows of gradients, and of these the columns whose maximum is at the edge's place. No row of
// gradients is copied for an id.
#pragma once

#include "plait/embedding/cuda/named_rows.cuh"
#include "plait/kernels/cuda/row_groups.cuh"

namespace plait {

// Arguments of sum_maxima(). All arrays are in memory of the GPU.
struct MaximaSums {
  const RowGroups& groups;       // of edges by row
  const Slot* from = nullptr;    // by edge: its row of gradients
  const Slot* places = nullptr;  // by edge
  GradientRows gradients;        // with places
  float* y = nullptr;            // rows of gradients.columns floats
  float* parts = nullptr;        // as many as groups.partial_sums(); null if that is 0
};

// Enqueues the sums, each in the order of edges, in pieces that depend on their number alone.
void sum_maxima(const MaximaSums& args, cudaStream_t stream);

}  // namespace plait
