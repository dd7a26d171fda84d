// Chooses what a user left open of a route, by times that were measured for the same graph or, on
// GPUs, by predicted ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plait/partition/quality.h"
#include "plait/plan/machine.h"
#include "plait/plan/measured_routes.h"

namespace plait {

// A route of which a part is open.
struct RouteQuestion {
  Route route;                 // with the standard choice in open parts
  bool open_strategy = false;  // any strategy will do
  bool open_partition = false;
  std::vector<std::uint64_t> widths;  // of rows, in floats, one per aggregation
  bool rows = false;                  // rows themselves must come to edges, as require_rows()
};

// One way that answers a question, and the predicted time of one aggregation at each width, added.
struct Alternative {
  Strategy strategy;
  PartitionScheme partition;
  double ms;
};

// An answer.
struct Decision {
  Route route;
  std::vector<Alternative> alternatives;  // by time, ascending; empty: no time is known
};

// A way must promise to be faster than the standard one by this factor to be chosen in its place:
// measurements vary, and predictions err by up to a seventh (cost_model.h).
constexpr double kWorthwhile = 1.03;
constexpr double kWorthwhilePrediction = 1.2;

// Returns the fastest way of those that were measured, or the standard one. Between measured widths
// times are interpolated; beyond them they are taken to grow with the width. The answer depends on
// the arguments alone.
Decision decide(const RouteQuestion& question, const std::vector<MeasuredRoute>& measured);

// Returns the strategy with the least predicted time on the question's own partition, of which
// `quality` has the counts, or the standard one. On the CPU there are no predictions. fits(route)
// tells whether there is memory for a route; it is asked before a route takes the place of the
// standard one. The answer depends on the arguments alone.
Decision predict_best(const RouteQuestion& question, const PartitionQuality& quality,
                      const std::function<bool(const Route&)>& fits,
                      const MachineProfile& profile = machine());

}  // namespace plait
