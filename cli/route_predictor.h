// Predicted times of aggregations by routes on one graph, on GPUs or on the CPU.
#pragma once

#include <optional>
#include <string>

#include "cli/cli.h"
#include "plait/graph/csr.h"
#include "plait/machine/rates.h"
#include "plait/partition/quality.h"
#include "plait/plan/route.h"

namespace plait::cli {

// Lets plans for the session's GPUs follow what `plait doctor --measure` measured with as many, in
// a process that runs on no GPU itself. Warns of a file that is kept and not used.
void plan_by_measured_machine(const Session& session);

// A partition is looked at first.
class RoutePredictor {
 public:
  // On the CPU, takes the rates that plait doctor --measure measured with as many ranks. The graph
  // outlives this object.
  RoutePredictor(const AnyCsr& graph, int ranks, bool gpus);

  // Returns why rates that are kept are not used; else an empty text.
  const std::string& note() const { return note_; }

  // `quality`: the counts of the partition.
  void look_at(const PartitionQuality& quality);
  // Returns the predicted milliseconds of y = A x on this partition; nothing if there is no model
  // or no rates.
  std::optional<double> milliseconds(const Route& route, std::uint64_t width) const;

 private:
  const AnyCsr& graph_;
  const bool gpus_;
  MachineRates rates_;  // of the CPU
  std::string note_;
  std::optional<double> far_share_;
  PartitionQuality quality_;
};

}  // namespace plait::cli
