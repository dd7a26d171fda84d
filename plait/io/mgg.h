// The graphs of MGG's artifact (Y. Wang et al., OSDI 2023), three files of numbers without headers:
//
//   NAME_beg_pos.bin   where the row of each vertex begins, and the number of edges; int64
//   NAME_csr.bin       the neighbours, row by row, counted from 0; int64
//   NAME_weight.bin    one weight per edge, int32; may be missing
//
// Row i lists the vertices that i aggregates from, as in a Csr. Each array may also be of the other
// width, int32 or int64: the sizes of the files tell.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plait/base/file.h"
#include "plait/graph/dataset.h"
#include "plait/io/rows.h"

namespace plait {

inline constexpr std::string_view kMggEnding = "_beg_pos.bin";

// Returns the files that belong to a graph's: those of MGG beside its offsets, or the file alone.
std::vector<std::string> files_of_graph(const std::string& path);

// The content of the three files.
struct MggBytes {
  std::span<const std::byte> offsets, neighbours, weights;  // no weights: an empty span
};

// Parses them. `file` names the offsets in messages. Weights that are all 1 are no weights.
// Allocates at most twice the size of the files, unless rows have to be sorted. Throws InputError.
ParsedRows parse_mgg(const MggBytes& bytes, const std::string& file);

// Reads a file of offsets, whose name ends in _beg_pos.bin, and the other files beside it.
ParsedRows read_mgg(const MappedFile& offsets);

// Writes the three files, the offsets last; an unweighted graph's edges weigh 1. `path` names the
// offsets. Throws Error for weights that are not whole numbers of 32 bits.
void write_mgg(const Dataset& dataset, const std::string& path);

}  // namespace plait
