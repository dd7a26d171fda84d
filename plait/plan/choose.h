// Chooses what a user left open of a route: by times that were measured for the same graph or, on
// GPUs, by predicted ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plait/machine/machine.h"
#include "plait/partition/quality.h"
#include "plait/plan/measured_routes.h"

namespace plait {

// A run whose route may have open parts: the strategy, the partition, and settings of strategy get.
struct RouteQuestion {
  Route route;                 // with the standard choice in open parts
  bool open_strategy = false;  // any strategy will do
  bool open_partition = false;
  bool open_settings = false;  // of strategy get on GPUs: none was given
  int ranks = 1;
  std::vector<std::uint64_t> widths = {};  // of rows, in floats, one per aggregation
  bool rows = false;                       // rows themselves must come to edges, as require_rows()
  std::string model = {};                  // that is trained, as RunKind::model; else empty
  double times = 1;                        // that all these aggregations are made
  // Strategies that training may try if no time is known (optimiser.h); empty: it tries none.
  std::vector<Strategy> possible = {};
};

// RouteQuestion::times that repay the search for any partition.
constexpr double kOften = 1e12;

// Tells whether a measurement can change the route.
bool has_open_part(const RouteQuestion& question);
// Returns the kind of run that the question asks for.
RunKind kind_of(const RouteQuestion& question);

// One way that answers a question, and the time of one aggregation at each width, added.
struct Alternative {
  TrialWay way;
  PartitionScheme partition;
  double ms;
};

// An answer, and why it was given.
struct Choice {
  Route route;
  int passes = 0;                              // as TrialWay::passes
  std::vector<TrialWay> trials = {};           // ways to try, the route's own first; empty: none
  std::string untried = {};                    // of an open strategy: why no other way is tried
  std::vector<Alternative> alternatives = {};  // by time, ascending; empty: no time is known
  bool measured = false;                       // the times of the alternatives; else predicted
  std::vector<std::string> reasons = {};       // line by line
  std::string note = {};                       // as MeasuredRoutes::note
};

// Chooses a route. The first of these that knows a time decides:
//   - times of y = A x, between whose widths times are interpolated; beyond them they are taken to
//     grow with the width. Rows that cross as less than fp32 were not measured. Ways are compared
//     with the standard way, by the widths at which both were measured: if it was not measured,
//     these times decide only where there is no memory for it. Where settings of strategy get are
//     open, each set that was measured is a way of its own, else all times are of the default ones;
//   - the way that stayed when a training of the question's kind tried several. If predictions
//     choose the partition (on GPUs, if it is open), the training may have been on any; then the
//     fastest is taken;
//   - on GPUs, times that are predicted by counts of the partitions. Clusters, which take long to
//     find, are compared only if a quarter of the time of all sums repays the search.
// If none does, the standard way is taken. A strategy for which there is no memory gives way to
// another: of measured ones, to the standard strategy on the same partition. Without measurements,
// `trials` tells the ways that training may try besides.
//
// counts(scheme) returns the counts of a partition, which outlive the call, or null for one that is
// not to be taken. fits(route) tells whether there is memory for a run by a route. Both may take
// long, and are asked only if the answer depends on them; `profile` only on GPUs. The answer
// depends on the arguments alone.
Choice choose(const RouteQuestion& question, const MeasuredRoutes& kept,
              const std::function<const PartitionQuality*(PartitionScheme)>& counts,
              const std::function<bool(const Route&)>& fits,
              const MachineProfile& profile = machine());

}  // namespace plait
