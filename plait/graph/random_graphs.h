// Graphs that are drawn at random, besides R-MAT (generate.h) and the block model (dcsbm.h): the
// same edges on every machine and for every number of threads.
//
// All functions throw UsageError if an option is out of range, DoesNotFitError before memory is
// taken.
#pragma once

#include <cstdint>

#include "plait/graph/edge_list.h"

namespace plait {

// Watts and Strogatz, "Collective dynamics of 'small-world' networks", Nature 393, 1998: a ring
// where each vertex is joined to the next `degree` / 2 ones; the far end of an edge is replaced by
// any vertex with the probability `rewired`. There may be loops and duplicates, which BuildOptions
// can drop.
struct SmallWorldOptions {
  std::uint64_t vertices = 0;
  std::uint64_t degree = 0;  // even
  double rewired = 0.1;
  std::uint64_t seed = 0;
};
AnyEdgeList generate_small_world(const SmallWorldOptions& options);
// Edges between uniformly drawn vertices of two sides: ids below `left`, and all others. `edges`
// counts both directions and is even. There may be duplicates.
struct BipartiteOptions {
  std::uint64_t vertices = 0;
  std::uint64_t left = 0;
  std::uint64_t edges = 0;
  std::uint64_t seed = 0;
};
AnyEdgeList generate_bipartite(const BipartiteOptions& options);

// Returns a directed graph like a crawl of the web whose pages are numbered by address: half of the
// links lead to a page near by, at a distance d with a probability of about 1/d; a quarter lead to
// the first page of a site of 64 pages; the others lead to some page of the whole crawl, and few
// pages are the aim of most of these (page n u^4 for a uniform u). Each page has about as many
// links as any other; the numbers of links that lead to a page differ much. There may be loops and
// duplicates.
struct CrawlOptions {
  std::uint64_t vertices = 0;
  std::uint64_t edges = 0;
  std::uint64_t seed = 0;
};
AnyEdgeList generate_crawl(const CrawlOptions& options);

}  // namespace plait
