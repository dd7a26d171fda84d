// The greatest of a row's neighbours, column by column (the max aggregation of GraphSAGE: Hamilton,
// Ying and Leskovec, NeurIPS 2017, section 3.3), and its gradient, on the CPU. max_rows_cuda.h
// takes the same arguments.
//
// Where several edges reach the maximum, the gradient is split evenly between them, as by
// scatter_reduce(amax) of PyTorch: a target sends each source [y | dy / number of such edges], and
// a source adds where its own value is that y.
#pragma once

#include "plait/base/row_stride.h"
#include "plait/kernels/spmm.h"

namespace plait {

// y and ties: rows x width without gaps; ties may be null. x: rows of `width`. A row without edges
// becomes 0, with 0 ties. NaN wins over all, and where it has won, all NaN reach it.
struct MaxForward {
  EdgeRows edges;
  std::uint64_t width = 0;
  float* y = nullptr;
  float* ties = nullptr;  // how many edges reach y
};

// Along the transposed graph. edges.x: rows of row_width(), [y | dy / ties], each padded to
// row_stride(width), so that both begin at multiples of 16 bytes.
struct MaxBackward {
  EdgeRows edges;
  std::uint64_t width = 0;
  const float* x = nullptr;  // rows x width, as forward read them
  float* dx = nullptr;       // rows x width

  std::uint64_t row_width() const { return 2 * row_stride(width); }
};

// All threads work, balanced by edges. The order of a row's edges has no influence but on the sum
// of gradients, and that depends on the graph alone.
void max_rows(const MaxForward& args);
void max_rows_backward(const MaxBackward& args);

// In plain loops, one thread: the oracle.
void max_rows_reference(const MaxForward& args);
void max_rows_backward_reference(const MaxBackward& args);

}  // namespace plait
