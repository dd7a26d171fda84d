// The sizes of one layer's edges in a sample, and rooms that hold many samples alike. The arrays
// and the launches of the layer's operations on a GPU depend on these sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "plait/kernels/row_cut.h"

namespace plait {

struct SampleCounts {
  std::uint64_t own = 0, inputs = 0, edges = 0;
  bool weighted = false;                    // edges have weights
  bool has_vertices = false;                // inputs have the numbers of their vertices
  GroupCounts along = {};                   // of own rows
  std::optional<GroupCounts> against = {};  // of inputs, if gradients go along the edges
};

// Returns the counts of a room for samples of one layer like those that were seen, at least one:
// the largest counts and some more. Rows of a room take the time of rows of a sample in dense
// layers, and get 2% more; edges take memory alone, and get 5%. The few rows that are cut vary
// most, and get a quarter. Own rows and inputs get as many for the same counts, so that the rooms
// of layers that follow each other fit together.
SampleCounts room_for(std::span<const SampleCounts> seen);

// Tells whether a sample fits into a room.
bool fits(const SampleCounts& sample, const SampleCounts& room);

}  // namespace plait
