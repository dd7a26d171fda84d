// The extremum over neighbours on the GPU: the arguments of extremum.h. All pointers, also in
// spans, are to memory that the GPU reaches, and edges.x has no peers. Results have the same bits
// each time.
//
// The kernels must move one row of x per edge, `width` floats forward and twice as many backward;
// they should take as long as an spmm() that reads as much. Rows are read fastest if x and its
// stride are multiples of 16 bytes and, forward, rows are padded to such a multiple.
#pragma once

#include "plait/kernels/cuda/edge_pass.cuh"
#include "plait/kernels/extremum.h"

namespace plait {

// Returns the floats that `scratch` of apply() needs for all passes; if 0, `scratch` may be null.
std::uint64_t scratch_floats(const ExtremumForward& args, std::span<const RowGroups> passes);
std::uint64_t scratch_floats(const ExtremumBackward& args, std::span<const RowGroups> passes);

// Enqueues a pass of the operation on the stream, with the same scratch as the passes before it.
// Results are complete after the last pass. Throws UsageError if x has peers.
void apply(const ExtremumForward& args, const EdgePass& pass, float* scratch, cudaStream_t stream);
void apply(const ExtremumBackward& args, const EdgePass& pass, float* scratch, cudaStream_t stream);

}  // namespace plait
