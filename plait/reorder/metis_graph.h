// A graph as METIS takes it.
#pragma once

#include <metis.h>

#include <cstdint>
#include <span>
#include <string>

#include "plait/base/array.h"
#include "plait/communities/quotient.h"
#include "plait/graph/csr.h"

namespace plait {

// METIS counts with 32 bits: it takes fewer vertices than the first, and fewer edges, each counted
// once, than the second.
inline constexpr std::uint64_t kMetisVertices = (std::uint64_t{1} << 31) - 1;
inline constexpr std::uint64_t kMetisEdges = (std::uint64_t{1} << 30) - 1;

// METIS wants every edge in both directions and no loops. Parallel edges are kept: they weigh.
struct MetisGraph {
  Buffer<idx_t> offsets;
  Buffer<idx_t> neighbours;
  Buffer<idx_t> vertex_weights;  // the work of a row: its edges, plus one
  Buffer<idx_t> edge_weights;    // or empty: all 1
};

// Returns a copy of the graph. Throws Error, with `remedy`, if the graph has kMetisVertices or
// kMetisEdges, or more; and DoesNotFitError.
MetisGraph metis_graph(const AnyCsr& graph, const std::string& remedy);

// Returns a quotient as METIS takes it. `work`: of the rows of each community; weights are divided
// by a power of two, if need be, so that METIS can add them up. Throws Error if there are
// kMetisEdges communities, or half as many pairs that edges join, or more.
MetisGraph metis_graph(const Quotient& quotient, std::span<const std::uint64_t> work,
                       const std::string& remedy);

// METIS_PartGraphKway or METIS_PartGraphRecursive.
using MetisPartition = decltype(&METIS_PartGraphKway);

// Returns the part of each vertex. Throws DoesNotFitError if METIS is short of memory, Error if it
// fails otherwise.
Buffer<idx_t> metis_parts(MetisPartition partition, MetisGraph graph, std::uint64_t parts,
                          std::uint64_t seed);

}  // namespace plait
