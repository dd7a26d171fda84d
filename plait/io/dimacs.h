// DIMACS .gr files, of the 9th implementation challenge on shortest paths (C. Demetrescu, A. V.
// Goldberg and D. S. Johnson, "Challenge file formats", 2006):
//
//   c comments
//   p sp vertices arcs        before all arcs
//   a source target weight    one line per arc, counted from 1
//
// An arc is an edge from source to target, a message that target aggregates. Weights are whole in
// the challenge; any finite number is read.
#pragma once

#include <string>
#include <string_view>

#include "plait/base/file.h"
#include "plait/graph/dataset.h"
#include "plait/graph/edge_list.h"

namespace plait {

// Parses a file. Throws an InputError that names `file`. Allocates at most twice the size of the
// text plus 1 MiB. `told` is the number of vertices if the caller knows it (vertex_count.h).
AnyEdgeList parse_dimacs(std::string_view text, const std::string& file, std::uint64_t told = 0);

// Writes arcs by targets; an unweighted graph's arcs weigh 1. Throws Error for weights that are not
// whole numbers of 32 bits.
void write_dimacs(const Dataset& dataset, AtomicFile& file);

}  // namespace plait
