// The GAP benchmark suite's serialised graphs (S. Beamer, K. Asanovic and D. Patterson,
// arXiv:1508.03619), .sg and with weights .wsg, little-endian and without padding:
//
//   bytes          what
//   0              1 if the graph is directed, 0 if each edge is there in both directions
//   1..8           edges m, int64; each direction counts
//   9..16          vertices n, int64
//   8 (n + 1)      where the edges of each vertex begin, and m, int64
//   4 m or 8 m     the target of each edge, int32; in .wsg a pair of target and weight, int32
//   and if it is directed the same two arrays again, for the edges turned round
//
// The rows of a Csr are the rows of the second pair, or of the only one. (The suite's text formats,
// .el and .wel, are in io/edge_list_file.h.)
#pragma once

#include <span>
#include <string>

#include "plait/base/file.h"
#include "plait/graph/dataset.h"
#include "plait/io/rows.h"

namespace plait {

// The kind of file: .sg, or .wsg with weights.
enum class GapWeights { none, int32 };

// Parses a file. The first pair of arrays of a directed graph is passed over. Allocates at most the
// size of the file, unless rows have to be sorted. Throws InputError; also if a graph that claims
// to be undirected is not symmetric.
ParsedRows parse_gap(std::span<const std::byte> bytes, const std::string& file, GapWeights weights);

// Writes a file. An unweighted graph's edges weigh 1 in .wsg. Throws Error for 2^31 vertices or
// more, for weights that are not whole numbers of 32 bits, and for weights that .sg would lose.
void write_gap(const Dataset& dataset, AtomicFile& file, GapWeights weights);

}  // namespace plait
