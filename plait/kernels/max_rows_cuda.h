// The maximum over neighbours on the GPU: the arguments of max_rows.h, where all pointers, those of
// spans too, are to memory that the GPU reaches, and edges.x has no peers. The same bits each time.
//
// What must move is a row of x an edge, `width` floats forward and twice as many backward; it
// should take as long as an spmm() that reads as much. Rows are read fastest where x and its stride
// are multiples of 16 bytes and, forward, rows are padded to one.
#pragma once

#include "plait/kernels/max_rows.h"
#include "plait/kernels/row_groups_cuda.h"

namespace plait {

// Floats that `scratch` needs, either way; null will do where that is 0.
std::uint64_t max_rows_scratch(const RowGroups& groups, std::uint64_t width);

// groups: of all of args.edges' rows, those without edges too.
void max_rows(const MaxForward& args, const RowGroups& groups, float* scratch, cudaStream_t stream);
void max_rows_backward(const MaxBackward& args, const RowGroups& groups, float* scratch,
                       cudaStream_t stream);

}  // namespace plait
