// Inference in bounded memory: one layer at a time over all vertices, block of rows after block.
//
// What a layer gives is kept in a file of the work folder (work_folder.h), which the next layer
// maps. A layer whose rows cross edges takes two stages: in the first, each block computes the rows
// that it sends (X W, say), which go to a file; in the second, it gathers the distinct rows that
// its edges read from that file, and sums. Where a layer sends its input as it is, there is no
// first stage. The layers are those of layer.h, run on blocks: an Aggregator that sends or receives
// stands where ranks would exchange rows (aggregate/block_aggregator.h). In the second stage a
// layer multiplies its own rows by weights once more, instead of having them in a file too.
//
// A block is as long as its rows, its edges and the distinct rows that they read fit the limit. A
// row's edges are summed in their order whatever the blocks are.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "plait/graph/dataset.h"
#include "plait/nn/train.h"

namespace plait {

struct ByLayers {
  std::uint64_t memory_limit = 0;  // bytes that a rank may hold and that no file backs
  std::string work;                // folder; taken up again if an earlier run left it, removed in
                                   // the end
  std::string graph;               // the file or folder that the dataset comes from
  const std::atomic<bool>* stop = nullptr;  // set: ends after the blocks under way
};

// Scores as infer() gives them, without the ranks' memory for them: `use` is called on rank 0, with
// values that are mapped from a file. `partition` is ranges. Collective. Throws as infer();
// DoesNotFitError if the limit is too low for one row, InputError if the work folder is that of
// another run, Interrupted after `stop` on any rank.
void infer_by_layers(World& world, const Dataset& dataset, const Partition& partition,
                     const InferConfig& config, const ByLayers& by_layers,
                     const std::function<void(const Scores&)>& use);

}  // namespace plait
