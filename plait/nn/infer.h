// The work of inference, without its results. Internal to this room.
#pragma once

#include <functional>

#include "plait/graph/dataset.h"
#include "plait/nn/config.h"

namespace plait {

// What infer() does on a rank, on this process alone with weights that were not learnt, whatever
// memory there is; `exact` as in Route; `placed` is called when all is there but the scores.
void rehearse_inference(const Dataset& dataset, const ModelConfig& model, bool exact,
                        const std::function<void()>& placed);

}  // namespace plait
