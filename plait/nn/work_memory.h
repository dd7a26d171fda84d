// The memory of training and of inference, before any of it is taken: the account of
// plan/memory_plan.h with what libtorch will hold, found by rehearsals on few vertices
// (tensor_trace.h).
#pragma once

#include "plait/graph/dataset.h"
#include "plait/nn/config.h"
#include "plait/partition/partition.h"
#include "plait/plan/memory_plan.h"
#include "plait/world/world.h"

namespace plait {

// `config.model` as it is trained: inputs, outputs and task are those of the dataset.
MemoryPlan plan_training(const Dataset& dataset, const Partition& partition,
                         const TrainConfig& config);

// Collective. Throw DoesNotFitError, on all ranks, where a run would need more than is free.
void require_training_fits(World& world, const Dataset& dataset, const Partition& partition,
                           const TrainConfig& config);
// `model`: that of the checkpoint.
void require_inference_fits(World& world, const Dataset& dataset, const Partition& partition,
                            const ModelConfig& model, const InferConfig& config);

// The model that a dataset is trained with.
ModelConfig model_for(ModelConfig model, const Dataset& dataset);

}  // namespace plait
