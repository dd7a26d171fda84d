// Edges whose ends stand in two arrays of a .npz archive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plait/graph/edge_list.h"
#include "plait/io/npz_archive.h"

namespace plait {

// The arrays, (E) integers each: edge e is a message from source[e] to target[e].
struct EndKeys {
  std::string source, target;
  bool doubtful =
      false;  // the names do not tell which is which: PyTorch Geometric's meaning is taken
};

// Returns the arrays `src` and `dst`, as DGL names them, or `row` and `col`, if both are there.
std::optional<EndKeys> ends_of(const NpzArchive& archive);

// Returns the largest id and 1; 0 if there are no edges. Throws InputError.
std::uint64_t count_named(const NpzArchive& archive, const EndKeys& keys);

// Returns the edges of a graph of so many vertices; if that is 0, of as many as ids tell
// (vertices_of_ids). Throws InputError, also for an id outside.
AnyEdgeList edges_of_ends(const NpzArchive& archive, const EndKeys& keys, std::uint64_t vertices);

}  // namespace plait
