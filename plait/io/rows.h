// Functions for formats that hold a graph by rows: offsets and neighbours, read from outside and
// checked, and rows of out-edges for formats that list the edges of a vertex by their source.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "plait/base/array.h"
#include "plait/graph/csr.h"
#include "plait/graph/dataset.h"
#include "plait/io/npy.h"

namespace plait {

// A graph as a file gives it, by rows.
struct ParsedRows {
  AnyCsr graph;                   // rows sorted by neighbour
  std::optional<bool> symmetric;  // if the reader found out
};

// A place in the middle of a file: `count` elements of a type.
struct RawArray {
  NpyType type;
  std::uint64_t begin = 0;  // in bytes
  std::uint64_t count = 0;
};
// Returns the array at that place, to be converted and checked by the functions of npy.h. `name`
// names it in messages. Throws InputError if the bytes end before it does.
NpyArray raw_array(std::span<const std::byte> bytes, const RawArray& array,
                   const std::string& name);

// Throws an InputError that names `file` and the vertex, unless offsets rise from 0 to `entries`.
void require_rising(std::span<const EdgeOffset> offsets, std::uint64_t entries,
                    const std::string& file);

// Returns the graph itself if each row is sorted by neighbour, else one with sorted rows; parallel
// edges keep their order.
AnyCsr with_sorted_rows(AnyCsr graph);

// Throws an InputError that names `file` and the first edge without a reverse, unless the graph is
// symmetric. Rows must be sorted.
void require_symmetric(const AnyCsr& graph, const std::string& file);

// Returns the graph with row i listing the targets of i's edges. For a symmetric graph this is the
// graph itself.
AnyCsr out_rows(const Dataset& dataset);

// For formats with whole weights: throws an Error that names `file` and the first edge whose weight
// is not a whole number in low .. high. The weights of an unweighted graph are 1.
void require_whole_weights(const AnyCsr& graph, std::int64_t low, std::int64_t high,
                           const std::string& file);

}  // namespace plait
