// Matrix Market coordinate files (R. F. Boisvert, R. Pozo and K. A. Remington, "The Matrix Market
// exchange formats", NISTIR 5935, 1996):
//
//   %%MatrixMarket matrix coordinate pattern|real|integer general|symmetric
//   % comments
//   rows columns entries
//   row column [value]        one line per entry, counted from 1
//
// Entry (i, j) is in row i, column j: vertex i - 1 aggregates from vertex j - 1. A symmetric file
// holds the lower triangle and stands for the general file in which every entry below the diagonal
// is mirrored. The matrix is square. Values become single precision weights, even if all of them
// are 1.
#pragma once

#include <string>
#include <string_view>

#include "plait/base/file.h"
#include "plait/graph/dataset.h"
#include "plait/graph/edge_list.h"

namespace plait {

// Parses a file. Throws an InputError that names `file`. Allocates the edge list, and at most twice
// the size of the text plus 1 MiB; for a symmetric file, twice the size of the general file that it
// stands for. `told` is the number of vertices if the caller knows it (vertex_count.h).
AnyEdgeList parse_matrix_market(std::string_view text, const std::string& file,
                                std::uint64_t told = 0);

// Writes a general pattern file, or a general real one if the graph is weighted, by rows.
void write_matrix_market(const Dataset& dataset, AtomicFile& file);

}  // namespace plait
