// Apps on the CPU (app.h).
#pragma once

#include <memory>

#include "plait/apps/app.h"
#include "plait/frontier/cpu/operators.h"

namespace plait {

template <template <class> class Algorithm>
std::unique_ptr<AppRun> app_on_cpu(SpreadGraph& graph) {
  return std::make_unique<RunOn<Algorithm, CpuOperators>>(graph);
}

}  // namespace plait
