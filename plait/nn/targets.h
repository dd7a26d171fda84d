// What a rank knows of its own vertices: labels, and which vertices train, validate and test.
#pragma once

#include <torch/types.h>

#include <array>

#include "plait/graph/dataset.h"
#include "plait/partition/partition.h"
#include "plait/world/world.h"

namespace plait {

// Vertices of a split, of this rank. Those without a label are in none.
struct SplitRows {
  torch::Tensor rows;    // int64, ascending
  torch::Tensor labels;  // int64, one each
};

struct Targets {
  torch::Tensor labels;             // own, int64; 0 where unknown
  std::array<SplitRows, 4> splits;  // indexed by Split
  std::array<double, 4> totals{};   // vertices of each split on all ranks

  const SplitRows& of(Split split) const { return splits[static_cast<std::size_t>(split)]; }
  double total(Split split) const { return totals[static_cast<std::size_t>(split)]; }
};

// Of the dataset's split number `split`. Collective.
Targets make_targets(World& world, const Dataset& dataset, const Partition& partition,
                     std::uint32_t split, const torch::Device& device);

// Cross entropy of each vertex of a split, by the scores of all own vertices.
torch::Tensor losses(const torch::Tensor& scores, const SplitRows& split);

}  // namespace plait
