// The head of a text, before its edges: comments, the names of columns, and a line of counts.
//
//   # Undirected graph: NAME      SNAP: a line stands for both directions (any letters' case)
//   % sym unweighted              KONECT: the same; `asym` says directed, `bip` two sets of
//   vertices # Nodes: N Edges: E           SNAP; or "N vertices, E edges", as Plait writes
//   source,target                 names of columns: a first line without any number; known names
//                                 in the other order swap the columns (column_names.h)
//   N E     or     N N E          counts of vertices and edges, which also could be an edge
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plait/io/column_names.h"
#include "plait/io/first_line.h"
#include "plait/io/text.h"

namespace plait {

inline bool begins_comment(char c) { return c == '#' || c == '%'; }

// The counts that a text states about its graph.
struct StatedCounts {
  std::uint64_t vertices = 0;
  std::uint64_t edges = 0;
  const char* at = nullptr;  // where in the text
};

struct EdgeListHead {
  const char* first = nullptr;   // the first line of numbers; the end of the text if there is none
  const char* second = nullptr;  // the next one, likewise
  std::optional<StatedCounts> counts;   // if the first line can be read so
  std::optional<StatedCounts> comment;  // counts in a comment
  const char* undirected = nullptr;     // the comment that says so
  const char* names = nullptr;          // the names of columns, if there are any
  ColumnNames columns;                  // what they say
  std::vector<std::string> notes;       // about lines that were passed over, one line each
};

// Reads the head. Does not look at any other line. FirstLine::skip leaves out the first line after
// the comments, whatever it is. Throws an InputError if columns are named in an order in which they
// cannot be read.
EdgeListHead read_edge_list_head(const TextInput& input, FirstLine first_line);

}  // namespace plait
