// Graph attention on the GPU: the arguments of attention.h. All pointers, also in spans, are to
// memory that the GPU reaches, and x has no peers. There are at most 32 heads. Results have the
// same bits each time: an edge's place in a sum depends on the graph and its passes alone, and the
// groups of a cut row are joined in order.
//
// The kernels must move one row of x per edge: heads x (head_stride + 1) floats forward, heads x
// (head_stride + 3) backward, and 8 bytes for the id of the slot if attention is dropped. They
// should take little more time than an spmm() that reads as much. Rows are read fastest if x and
// its stride are multiples of 16 bytes; rows wider than 128 floats are read in slices of 128, each
// with the scores of its heads.
#pragma once

#include "plait/kernels/attention.h"
#include "plait/kernels/cuda/edge_pass.cuh"

namespace plait {

// Returns the floats that `scratch` of apply() needs for all passes; if 0, `scratch` may be null.
// Throws UsageError above 32 heads.
std::uint64_t scratch_floats(const AttentionForward& args, std::span<const RowGroups> passes);
std::uint64_t scratch_floats(const AttentionBackward& args, std::span<const RowGroups> passes);

// Enqueues a pass of the operation on the stream, with the same scratch as the passes before it.
// Results are complete after the last pass, up to rounding the same however edges are spread over
// passes. Throws UsageError if x has peers.
void apply(const AttentionForward& args, const EdgePass& pass, float* scratch, cudaStream_t stream);
void apply(const AttentionBackward& args, const EdgePass& pass, float* scratch,
           cudaStream_t stream);

}  // namespace plait
