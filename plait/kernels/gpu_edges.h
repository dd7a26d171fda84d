// The edges of a graph on the GPU, and what is done along them beside sums: attention and the
// maximum over neighbours. No header of CUDA is needed here.
#pragma once

#include <memory>

#include "plait/kernels/attention.h"
#include "plait/kernels/max_rows.h"

namespace plait {

// Arguments are those of attention.h and max_rows.h, with pointers to memory of the GPU, but for
// begin, end and columns of their edges, which are set here. The work is enqueued on the
// cudaStream_t and gives the same bits each time. `scratch` is overwritten.
class GpuEdges {
 public:
  // Copies the edges to the current GPU; pointers are to memory of the host, and x is not looked
  // at. Edges behind the last row's end are left out. Throws DoesNotFitError.
  explicit GpuEdges(const EdgeRows& edges);
  ~GpuEdges();

  std::uint64_t rows() const;

  // Floats of scratch, for either way.
  std::uint64_t attention_scratch(const AttentionShape& shape) const;
  // Throw UsageError above 32 heads.
  void attention(AttentionForward args, float* scratch, void* stream) const;
  void attention_backward(AttentionBackward args, float* scratch, void* stream) const;

  // Floats of scratch, for either way.
  std::uint64_t max_scratch(std::uint64_t width) const;
  void max_rows(MaxForward args, float* scratch, void* stream) const;
  void max_rows_backward(MaxBackward args, float* scratch, void* stream) const;

 private:
  struct Arrays;
  std::unique_ptr<const Arrays> arrays_;
};

}  // namespace plait
