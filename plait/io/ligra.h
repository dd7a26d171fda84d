// Ligra's adjacency text, .adj, of the Problem Based Benchmark Suite (J. Shun and G. E. Blelloch,
// "Ligra", PPoPP 2013), words separated by any blanks and line ends:
//
//   AdjacencyGraph, or WeightedAdjacencyGraph
//   vertices edges
//   one offset per vertex: where its edges begin
//   the target of each edge, counted from 0, by sources
//   the weight of each edge, in the weighted kind
#pragma once

#include <string>
#include <string_view>

#include "plait/base/file.h"
#include "plait/graph/csr.h"
#include "plait/graph/dataset.h"

namespace plait {

// Returns the graph by sources: row i lists the targets of the edges of i, in the order of the
// file. Throws an InputError that names `file`. Allocates at most twice the size of the text plus 1
// MiB, and 8 bytes per vertex. Each vertex has a word in the file.
AnyCsr parse_ligra(std::string_view text, const std::string& file);

// Writes a file. Throws Error for weights that are not whole numbers of 32 bits, as Ligra reads.
void write_ligra(const Dataset& dataset, AtomicFile& file);

}  // namespace plait
