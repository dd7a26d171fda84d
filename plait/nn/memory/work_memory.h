// The memory of training and of inference, before any of it is taken: the account of
// plan/memory_plan.h with the blocks that libtorch will hold, found by rehearsals on few vertices
// (tensor_trace.h).
#pragma once

#include "plait/aggregate/run_memory.h"
#include "plait/graph/dataset.h"
#include "plait/nn/config.h"
#include "plait/partition/partition.h"
#include "plait/plan/memory_plan.h"
#include "plait/world/world.h"

namespace plait {

// Returns the account of a training run, by rank. `config.model` gets its inputs, outputs and task
// from the dataset. Not collective.
MemoryPlan plan_training(const Dataset& dataset, const Partition& partition,
                         const TrainConfig& config);

// Returns the memory of a training run, or of scoring all examples where they are. `model` and
// `config.model` have the dataset's inputs, outputs and task.
NamedRun training_memory(const Dataset& dataset, const Partition& partition,
                         const TrainConfig& config);
NamedRun scoring_memory(const Dataset& dataset, const Partition& partition,
                        const ModelConfig& model, const Route& route);

// Returns a small dataset without edges whose dense features and labels are like these, all in
// training: with it, training_memory() and scoring_memory() need no graph.
Dataset stand_in(std::uint64_t width, std::int32_t classes);

// Collective. Throw DoesNotFitError on all ranks if a run would need more than is free. `model` of
// inference is the checkpoint's.
void require_training_fits(World& world, const Dataset& dataset, const Partition& partition,
                           const TrainConfig& config);
void require_inference_fits(World& world, const Dataset& dataset, const Partition& partition,
                            const ModelConfig& model, const InferConfig& config);

// Returns the bytes that training on samples (TrainConfig::sampled) will take on a rank once the
// model, its own inputs and the whole graph are in place, without a table of features.
std::uint64_t sampled_bytes_ahead(const Dataset& dataset, const Partition& partition,
                                  const TrainConfig& config, int rank);

// Tells whether so many ranks record steps on samples: on GPUs, unless ranks exchange rows within a
// step, a norm takes all rows together, or features are sparse and have sizes of their own.
bool records_samples(const TrainConfig& config, bool sparse, int ranks);

// Returns the model with the inputs, outputs and task of a dataset.
ModelConfig model_for(ModelConfig model, const Dataset& dataset);

}  // namespace plait
