// Values of edges on the GPU: the operations of kernels/edge_values.h. This header needs no header
// of CUDA.
//
// One warp works on a neighbour group (row_groups.cuh). Each operation must move one row of b per
// edge, and a row of m if there is one; scores and weights are `heads` floats per edge. Rows are
// read fastest if `features` is a multiple of 4. Results have the same bits each time: a row's
// edges are summed in an order that depends on the graph alone.
#pragma once

#include <memory>

#include "plait/kernels/edge_values.h"

namespace plait {

// The lists of edges of all rows, cut into groups. The arrays that arguments name, in
// EdgeValues::edges too, are in memory of the GPU and stay the caller's; `edges` must be the lists
// that the groups were made of.
class GpuEdgeGroups {
 public:
  // Row i has the edges begin[i] .. begin[i + 1] - 1. Waits for the cudaStream_t. Throws UsageError
  // above 2^31 - 1 rows, DoesNotFitError if memory is short.
  GpuEdgeGroups(const EdgeOffset* begin, std::uint64_t rows, EdgeOffset edges, void* stream);
  ~GpuEdgeGroups();

  // Returns the floats of `scratch` of sums() and softmax(), at a multiple of 16 bytes.
  std::uint64_t scratch_of_sums(std::uint64_t width) const;
  std::uint64_t scratch_of_softmax(std::uint64_t heads) const;

  // Enqueue the operations on the cudaStream_t.
  void scores(const EdgeValues& args, float* z, void* stream) const;
  void sums(const EdgeValues& args, float* y, float* scratch, void* stream) const;
  void rows(const EdgeValues& args, float* r, void* stream) const;
  void softmax(const EdgeSoftmax& args, float* p, float* scratch, void* stream) const;

 private:
  struct Groups;
  std::unique_ptr<const Groups> groups_;
};

}  // namespace plait
