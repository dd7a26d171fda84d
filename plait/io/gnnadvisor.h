// The graphs of GNNAdvisor's artifact (Y. Wang et al., OSDI 2021), .npz archives of three arrays:
//
//   src_li, dst_li   (E) integers: edge e is a message from src_li[e] to dst_li[e]
//   num_nodes        one integer
#pragma once

#include "plait/base/file.h"
#include "plait/graph/dataset.h"
#include "plait/graph/edge_list.h"
#include "plait/io/npz_archive.h"

namespace plait {

// Reads the arrays. `told` is the number of vertices if the caller knows it (vertex_count.h).
// Throws InputError.
AnyEdgeList parse_gnnadvisor(const NpzArchive& archive, std::uint64_t told = 0);

// Writes the archive. Throws Error for a weighted graph, as the archive has no place for weights.
void write_gnnadvisor(const Dataset& dataset, AtomicFile& file);

}  // namespace plait
