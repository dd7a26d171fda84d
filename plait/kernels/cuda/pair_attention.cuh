// Attention of pairs of rows on the GPU: the arguments of pair_attention.h. All pointers, also in
// spans, are to memory that the GPU reaches, and x has no peers; rows of x begin at multiples of 16
// bytes. There are at most kMostPairFeatures features per head. Results have the same bits each
// time: an edge's place in a sum depends on the graph and its passes alone, and the groups of a cut
// row are joined in order.
//
// The kernels must move one row of x per edge: heads x features floats, twice that for values of
// their own and for the gradients of sources. They should take little more time than an spmm() that
// reads as much. No number is kept per edge.
#pragma once

#include "plait/kernels/cuda/edge_pass.cuh"
#include "plait/kernels/pair_attention.h"

namespace plait {

// Returns the floats that `scratch` of apply() needs for all passes; if 0, `scratch` may be null.
// Throws UsageError for more features.
std::uint64_t scratch_floats(const PairForward& args, std::span<const RowGroups> passes);
std::uint64_t scratch_floats(const PairOwnGradient& args, std::span<const RowGroups> passes);
std::uint64_t scratch_floats(const PairBackward& args, std::span<const RowGroups> passes);

// Enqueues a pass of the operation on the stream, with the same scratch as the passes before it.
// Results are complete after the last pass, up to rounding the same however edges are spread over
// passes. Throws UsageError if x has peers.
void apply(const PairForward& args, const EdgePass& pass, float* scratch, cudaStream_t stream);
void apply(const PairOwnGradient& args, const EdgePass& pass, float* scratch, cudaStream_t stream);
void apply(const PairBackward& args, const EdgePass& pass, float* scratch, cudaStream_t stream);

}  // namespace plait
