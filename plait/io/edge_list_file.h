// Edge lists as text, by the rules of SNAP's files: a line `u v` is an edge from u to v, a message
// that v aggregates.
//
//   # or % begin a comment line, anywhere in the file
//   u v [weight]              separated by blanks or by one comma
//
// Columns are separated in the same way within a line. The weight column is on every line or on
// none; `{}` in its place, as networkx writes for an edge without data, is no weight. Ids are any
// numbers of 64 bits. edge_list_head.h has the lines that may stand before the edges.
//
// A first line `n e` or `n n e` is read as counts if e lines follow, and if their ids are either
// below n, or in 1 .. n: the graph then has n vertices. Otherwise it is an edge.
//
// The GAP benchmark suite (S. Beamer, K. Asanovic and D. Patterson, arXiv:1508.03619) has the same
// lines in .el (`u v`) and .wel (`u v weight`), but its ids are the vertices 0 .. largest id,
// including vertices without edges, and it knows no comments, so that none are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plait/base/array.h"
#include "plait/base/file.h"
#include "plait/graph/dataset.h"
#include "plait/graph/edge_list.h"
#include "plait/io/first_line.h"

namespace plait {

// The edges of a file.
struct ParsedEdgeList {
  AnyEdgeList edges;                  // ids from 0 to n - 1, in the order of the original ids
  Array<std::uint64_t> original_ids;  // ascending, one per vertex; empty if the ids were 0 .. n - 1
  std::string undirected = {};        // the comment that says so, and its line: "line 1 '# ...'"
  std::vector<std::string> notes = {};  // how doubtful lines were read, one line each
};

struct EdgeListOptions {
  FirstLine first_line = FirstLine::guess;
  // Ids are the vertices: 0 .. `vertices` - 1, or up to the largest id.
  bool ids_are_vertices = false;
  std::uint64_t vertices = 0;  // if this is not 0, ids are vertices
  bool weighted = false;       // a weight is required
};

// Parses a file. Throws an InputError that names `file`; also if there is no edge. Allocates at
// most twice the size of the text plus 1 MiB, and 8 bytes per vertex for counts of ids 1 .. n.
//
// If ids are vertices, ids outside 0 .. vertices - 1 are refused, or, if the number of vertices is
// not given, ids that leave most of them without an edge.
ParsedEdgeList parse_edge_list(std::string_view text, const std::string& file,
                               const EdgeListOptions& options = {});

// Writes a comment line with the counts, then one line per edge, by targets, with original ids if
// there are any. A vertex without edges is not in the file.
void write_edge_list(const Dataset& dataset, AtomicFile& file);

// Write lines `u v`, or `u v weight`, by targets, as the GAP suite reads them; an unweighted
// graph's edges weigh 1. Vertices after the last one with an edge are not in the file.
// write_gap_text() throws Error for a weighted graph.
void write_gap_text(const Dataset& dataset, AtomicFile& file);
void write_gap_weighted_text(const Dataset& dataset, AtomicFile& file);

}  // namespace plait
