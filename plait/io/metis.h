// METIS .graph files (G. Karypis, "METIS 5.1 manual", section 4.1.1): undirected graphs, one line
// per vertex.
//
//   % comments
//   vertices edges [fmt [ncon]]
//   [size] [weight ...] neighbour [weight] neighbour [weight] ...
//
// Vertices are counted from 1. fmt is up to three digits, each 0 or 1: vertices have sizes,
// vertices have weights (ncon of them, 1 if not given), edges have weights. An edge stands in the
// lines of both of its ends and counts as one in the header; a loop stands in its line once or
// twice. A vertex without edges has an empty line.
//
// Sizes and weights of vertices are left out, with a warning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plait/base/file.h"
#include "plait/graph/dataset.h"
#include "plait/io/rows.h"

namespace plait {

// The graph of a file.
struct ParsedMetis {
  ParsedRows rows;
  std::vector<std::string> warnings;  // parts of the file that were left out, one line each
};

// Parses a file. Throws an InputError that names `file`; also if the counts differ from the
// header's, or an edge has no reverse of the same weight. Allocates at most twice the size of the
// text plus 1 MiB, and 8 bytes per line, unless rows have to be sorted.
ParsedMetis parse_metis(std::string_view text, const std::string& file);

// Writes a file. Throws Error for graphs that the format cannot hold: graphs that are not symmetric
// or have loops, and weights that are not whole numbers from 1 on.
void write_metis(const Dataset& dataset, AtomicFile& file);

}  // namespace plait
