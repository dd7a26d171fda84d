// The work of inference, without its results. Internal to this room.
#pragma once

#include <functional>

#include "plait/graph/dataset.h"
#include "plait/nn/config.h"

namespace plait {

// Does the work of infer() on one rank, in this process alone, with weights that were not learnt
// and whatever memory there is. `exact` is as in Route. `placed` is called when everything but the
// scores is in memory.
void rehearse_inference(const Dataset& dataset, const ModelConfig& model, bool exact,
                        const std::function<void()>& placed);

}  // namespace plait
