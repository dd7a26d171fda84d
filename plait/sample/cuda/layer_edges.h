// The edges of a hop as a layer reads them, on a GPU (sample/layer_edges.h). This header needs no
// header of CUDA.
#pragma once

#include "plait/sample/layer_edges.h"

namespace plait {

// Enqueues the writing of all results on the cudaStream_t. All pointers are to memory that the
// current GPU reaches.
void gpu_layer_edges(const LayerEdges& a, void* stream);

}  // namespace plait
