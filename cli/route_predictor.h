// Predicted times of aggregations by routes on one graph, on GPUs or on the CPU.
#pragma once

#include <optional>

#include "cli/cli.h"
#include "plait/graph/csr.h"
#include "plait/machine/rates.h"
#include "plait/partition/quality.h"
#include "plait/plan/route.h"

namespace plait::cli {

// Lets plans for the session's GPUs follow what `plait doctor --measure` measured with as many, in
// a process that runs on no GPU itself. Warns of a file that is kept and not used.
void plan_by_measured_machine(const Session& session);

class RoutePredictor {
 public:
  // On the CPU, takes the rates that plait doctor --measure measured with as many ranks. Warns of
  // rates that are kept and not used.
  RoutePredictor(const AnyCsr& graph, int ranks, const Session& session);

  // Returns the predicted milliseconds of y = A x on a partition of these counts; nothing if there
  // is no model or no rates.
  std::optional<double> milliseconds(const Route& route, const PartitionQuality& quality,
                                     std::uint64_t width) const;

 private:
  MachineRates rates_;    // of the CPU
  double far_share_ = 0;  // if there are rates
};

}  // namespace plait::cli
