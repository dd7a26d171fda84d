// The labels of a rank's own examples (vertices, or graphs of a set), and the examples that train,
// validate and test.
#pragma once

#include <torch/types.h>

#include <array>
#include <span>

#include "plait/graph/dataset.h"
#include "plait/nn/layers/dropout.h"
#include "plait/world/world.h"

namespace plait {

// Labels are int64, one per example; or for several labels float32, examples x classes, 0 or 1.

// Examples of a split, of this rank. Examples without a label are in none.
struct SplitRows {
  torch::Tensor rows;    // int64, ascending
  torch::Tensor labels;  // of these rows
};

struct Targets {
  torch::Tensor labels;             // of all own examples; 0 where unknown
  std::array<SplitRows, 4> splits;  // indexed by Split
  std::array<double, 4> totals{};   // examples of each split on all ranks

  const SplitRows& of(Split split) const { return splits[static_cast<std::size_t>(split)]; }
  double total(Split split) const { return totals[static_cast<std::size_t>(split)]; }
};

// The splits that are measured, in the same order everywhere.
inline constexpr std::array kMeasured{Split::train, Split::validation, Split::test};

// Returns the labels of these examples of the dataset, on the CPU; 0 where unknown.
torch::Tensor labels_of(const Dataset& dataset, std::span<const std::uint64_t> examples);

// Collective. Returns the targets of the rank's own examples; `split` has an entry for each example
// of the dataset. The tensors are where `own` is.
Targets make_targets(World& world, const Dataset& dataset, std::span<const Split> split,
                     const VertexList& own);

}  // namespace plait
