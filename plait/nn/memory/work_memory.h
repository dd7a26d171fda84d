// The memory of training and of inference, before any of it is taken: the account of
// plan/memory_plan.h with the blocks that libtorch will hold, found by rehearsals on few vertices
// (tensor_trace.h).
#pragma once

#include "plait/graph/dataset.h"
#include "plait/nn/config.h"
#include "plait/partition/partition.h"
#include "plait/plan/memory_plan.h"
#include "plait/world/world.h"

namespace plait {

// Returns the memory of a training run, by rank. `config.model` gets its inputs, outputs and task
// from the dataset. Not collective.
MemoryPlan plan_training(const Dataset& dataset, const Partition& partition,
                         const TrainConfig& config);

// Collective. Throw DoesNotFitError on all ranks if a run would need more than is free. `model` of
// inference is the checkpoint's.
void require_training_fits(World& world, const Dataset& dataset, const Partition& partition,
                           const TrainConfig& config);
void require_inference_fits(World& world, const Dataset& dataset, const Partition& partition,
                            const ModelConfig& model, const InferConfig& config);

// Returns the bytes of the batches that a rank holds at once in training on samples
// (TrainConfig::sampled), at the most, without the work of a step.
std::uint64_t batch_bytes(const Dataset& dataset, const TrainConfig& config);

// Returns the model with the inputs, outputs and task of a dataset.
ModelConfig model_for(ModelConfig model, const Dataset& dataset);

}  // namespace plait
