// A graph as METIS takes it.
#pragma once

#include <metis.h>

#include "plait/base/array.h"
#include "plait/graph/csr.h"

namespace plait {

// METIS wants every edge in both directions and no loops. Parallel edges are kept: they weigh.
struct MetisGraph {
  Buffer<idx_t> offsets;
  Buffer<idx_t> neighbours;
  Buffer<idx_t> vertex_weights;  // the work of a row: its edges, plus one
};

// Returns a copy of the graph. Throws Error, with `remedy`, if the graph has 2^31 - 1 vertices or
// 2^30 - 1 edges, or more; and DoesNotFitError.
MetisGraph metis_graph(const AnyCsr& graph, const char* remedy);

// METIS_PartGraphKway or METIS_PartGraphRecursive.
using MetisPartition = decltype(&METIS_PartGraphKway);

// Returns the part of each vertex. Throws DoesNotFitError if METIS is short of memory, Error if it
// fails otherwise.
Buffer<idx_t> metis_parts(MetisPartition partition, MetisGraph graph, std::uint64_t parts,
                          std::uint64_t seed);

}  // namespace plait
