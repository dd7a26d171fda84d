// Passes of an operation over edges on the GPU. An operation may be done in several, each over a
// part of every row's edges, so that it can begin before all rows of x are there. The first pass
// writes the results of its edges; each later one adds its edges to the results that stand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plait/kernels/cuda/row_groups.cuh"

namespace plait {

// One pass of several, which are run in order. Together the passes have each edge once. The groups
// of the first are of all rows, rows without edges too; the groups of later ones skip empty rows.
struct EdgePass {
  std::span<const RowGroups> all;  // the groups of all passes, at least one
  std::size_t number = 0;          // of this pass

  const RowGroups& groups() const { return all[number]; }
  bool first() const { return number == 0; }
  bool last() const { return number + 1 == all.size(); }
};

// Returns the most pieces of cut rows in one pass.
inline std::uint64_t most_partial_sums(std::span<const RowGroups> passes) {
  std::uint64_t most = 0;
  for (const RowGroups& groups : passes)
    most = std::max<std::uint64_t>(most, groups.partial_sums());
  return most;
}

}  // namespace plait
