// Renumbering of a dataset's vertices.
//
// An order lists every vertex once: vertex order[i] becomes vertex i. The dataset remembers the
// numbers that its vertices had at first (Dataset::numbers), so that results can be told by them.
#pragma once

#include <cstdint>
#include <span>

#include "plait/graph/dataset.h"

namespace plait {

// Returns the first place whose number is not below the size, or also stands before it; the size if
// `order` is a permutation. Takes one bit per entry.
std::uint64_t first_no_permutation(std::span<const std::uint64_t> order);

// Returns the place of each number in a permutation: result[order[i]] = i.
Buffer<std::uint64_t> inverse_of(std::span<const std::uint64_t> order);

// Returns the dataset with vertex order[i] as vertex i, rows sorted again; parallel edges keep
// their order. Works on all that is known of vertices. Orders compose: the numbers of the result
// are those from before the first renumbering. Throws Error unless `order` is a permutation of the
// vertices, DoesNotFitError.
Dataset renumbered(const Dataset& dataset, std::span<const std::uint64_t> order);

// Returns the dataset as it was before it was renumbered; itself if it never was. Throws as
// renumbered().
Dataset with_first_numbers(const Dataset& dataset);

// Throws DoesNotFitError if `copies` renumbered datasets, which the processes of this host are
// about to make, do not fit its memory.
void require_memory_to_renumber(const Dataset& dataset, std::uint64_t copies);

// Returns the features with row order[i] as row i.
Features in_order(const Features& features, std::span<const std::uint64_t> order);

// Returns the vertex that has each number; empty if vertices have their first numbers.
Buffer<std::uint64_t> vertices_by_number(const Dataset& dataset);

// Return values that are given in the order before the dataset was renumbered, one per vertex by
// its number or one per edge by the numbers of its target and its source, in the order of the
// dataset's vertices or edges. Parallel edges keep their order.
Array<std::int64_t> vertex_values_in_order(const Dataset& dataset, Array<std::int64_t> values);
Array<std::int64_t> edge_values_in_order(const Dataset& dataset, Array<std::int64_t> values);

}  // namespace plait
