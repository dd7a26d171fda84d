// Graph attention on the GPU: the arguments of attention.h, where all pointers, those of spans too,
// are to memory that the GPU reaches, and x has no peers. At most 32 heads. The same bits each
// time: an edge's place in a sum depends on the graph alone, and the groups of a cut row are joined
// in order.
//
// What must move is a row of x an edge: heads x (head_stride + 1) floats forward, heads x
// (head_stride + 3) backward, and 8 bytes for the id of the slot if attention is dropped. It should
// take little more than an spmm() that reads as much. Rows are read fastest where x and its stride
// are multiples of 16 bytes; rows wider than 128 floats are read in slices of so many, each with
// the scores of its heads.
#pragma once

#include "plait/kernels/attention.h"
#include "plait/kernels/row_groups_cuda.h"

namespace plait {

// Floats that `scratch` needs; null will do where that is 0.
std::uint64_t attention_scratch(const RowGroups& groups, const AttentionShape& shape);
std::uint64_t attention_backward_scratch(const RowGroups& groups, std::uint64_t rows,
                                         const AttentionShape& shape);

// groups: of all of args.edges' rows, those without edges too. Throws UsageError above 32 heads.
void attention(const AttentionForward& args, const RowGroups& groups, float* scratch,
               cudaStream_t stream);
void attention_backward(const AttentionBackward& args, const RowGroups& groups, float* scratch,
                        cudaStream_t stream);

}  // namespace plait
