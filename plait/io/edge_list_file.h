// Edge lists as text, by the rules of SNAP's files: a line `u v` is an edge from u to v, a message
// that v aggregates.
//
//   # or % begin a comment line, anywhere in the file
//   u v [weight]              separated by blanks or by one comma
//
// A first line that begins with a letter ("source,target") names the columns and is skipped. The
// weight column is on every line or on none. Ids are any numbers of 64 bits.
//
// The GAP benchmark suite (S. Beamer, K. Asanovic and D. Patterson, arXiv:1508.03619) has the same
// lines in .el (`u v`) and .wel (`u v weight`), but its ids are the vertices 0 .. largest id, those
// without edges included, and it knows no comments, so that none are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plait/base/array.h"
#include "plait/base/file.h"
#include "plait/graph/dataset.h"
#include "plait/graph/edge_list.h"

namespace plait {

struct ParsedEdgeList {
  AnyEdgeList edges;                  // ids from 0 to n - 1, in the order of the original ids
  Array<std::uint64_t> original_ids;  // ascending, one a vertex; empty if the ids were 0 .. n - 1
};

// Throws InputError, naming `file`; also when there is no edge. Allocates at most twice the size
// of the text plus 1 MiB.
ParsedEdgeList parse_edge_list(std::string_view text, const std::string& file);

// For texts whose ids are vertices.
struct VertexIds {
  std::uint64_t vertices = 0;  // how many there are, at most kMaxVertices32; 0: largest id + 1
  bool weighted = false;       // a weight is required
};

// Throws InputError as above, and for ids outside 0 .. vertices - 1, or where the number of
// vertices is not given, for ids that leave most of them without an edge.
AnyEdgeList parse_edge_list(std::string_view text, const std::string& file, const VertexIds& ids);

// A comment line with the counts, then one line an edge, by targets, with original ids if there
// are any. A vertex without edges is not in the file.
void write_edge_list(const Dataset& dataset, AtomicFile& file);

// As the GAP suite reads them: lines `u v`, or `u v weight`, by targets; an unweighted graph's
// edges weigh 1. Vertices after the last one with an edge are not in the file. Weights in `u v` are
// an Error.
void write_gap_text(const Dataset& dataset, AtomicFile& file);
void write_gap_weighted_text(const Dataset& dataset, AtomicFile& file);

}  // namespace plait
