// Builds a CSR from an edge list.
#pragma once

#include "plait/graph/csr.h"
#include "plait/graph/edge_list.h"

namespace plait {

// Changes to the edges on the way.
struct BuildOptions {
  bool undirected = false;       // add the reverse of every edge, then drop duplicates
  bool drop_loops = false;       // drop edges (i, i)
  bool drop_duplicates = false;  // keep the first of parallel edges, in the order given
};

// Returns the graph with rows sorted by neighbour; parallel edges keep the order given. Uses all
// threads; the result does not depend on their number. Throws DoesNotFitError if the CSR needs more
// memory than the machine has free.
template <VertexId V>
Csr<V> build_csr(EdgeList<V> edges, const BuildOptions& options = {});
AnyCsr build_csr(AnyEdgeList edges, const BuildOptions& options = {});

// Returns the graph with every edge turned round; rows are sorted by neighbour.
template <VertexId V>
Csr<V> transpose(const Csr<V>& graph);

}  // namespace plait
