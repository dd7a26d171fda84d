// Inference in bounded memory: one layer at a time over all vertices, block of rows after block.
//
// The output of a layer is kept in a file of the work folder (work_folder.h), which the next layer
// maps. A layer whose rows cross edges takes two stages: in the first, each block computes the rows
// that it sends (X W, say), which go to a file; in the second, it gathers the distinct rows that
// its edges read from that file, and sums. If a layer sends its input as it is, there is no first
// stage. The same layers (layer.h) are run on blocks: an Aggregator that sends or receives takes
// the place of the exchange between ranks (aggregate/block_aggregator.h). In the second stage a
// layer multiplies its own rows by weights once more, so that no file has to keep them.
//
// A block is as long as its rows, its edges and the distinct rows that they read fit the limit. A
// row's edges are summed in their order whatever the blocks are.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "plait/graph/dataset.h"
#include "plait/nn/inference/work_folder.h"
#include "plait/nn/training/train.h"

namespace plait {

// The bounds and the place of such a run.
struct ByLayers {
  std::uint64_t memory_limit = 0;  // bytes that a rank may hold in memory that no file backs
  // The work folder. A folder that an earlier run left is taken up again; it is removed in the end.
  WorkPlace work;
  std::string graph;  // path of the file or folder that the dataset comes from
  // When another thread or a signal handler sets it, the run ends after the blocks under way. May
  // be null.
  const std::atomic<bool>* stop = nullptr;
};

// Collective. Calls `use` on rank 0 with the scores that infer() would give, whose values are
// mapped from a file. `partition` must be ranges. Throws as infer(), and UsageError for other
// partitions and sets of graphs, DoesNotFitError if the limit is too low for one row, InputError if
// the work folder belongs to another run, Interrupted on all ranks after `stop` on any.
void infer_by_layers(World& world, const Dataset& dataset, const Partition& partition,
                     const InferConfig& config, const ByLayers& by_layers,
                     const std::function<void(const Scores&)>& use);

}  // namespace plait
