// Chooses what a user left open of a route, by times that were measured for the same graph or, on
// GPUs, by predicted ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plait/machine/machine.h"
#include "plait/partition/quality.h"
#include "plait/plan/measured_routes.h"

namespace plait {

// A route with an open part: the strategy, the partition, or both.
struct RouteQuestion {
  Route route;                 // with the standard choice in open parts
  bool open_strategy = false;  // any strategy will do
  bool open_partition = false;
  std::vector<std::uint64_t> widths;  // of rows, in floats, one per aggregation
  bool rows = false;                  // rows themselves must come to edges, as require_rows()
  std::string model;                  // that is trained, as TrainingKind::model; else empty
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
// measurements vary, and predictions err by up to a seventh (cost_model.h). By the measured cases
// of tests/plan/regret_test.cpp, kWorthwhilePrediction may be 1.14 to 1.22: below, a small crawl
// takes 4% longer, above, a binary tree takes 22% longer. Predictions for the standard strategy on
// another partition err alike, so that less is asked of them.
constexpr double kWorthwhile = 1.03;
constexpr double kWorthwhilePrediction = 1.15;
constexpr double kWorthwhilePartition = 1.02;

// A partition that may be taken, and its counts, which outlive this.
struct CountedPartition {
  PartitionScheme scheme;
  const PartitionQuality* quality;
};

// Returns the fastest of the measured ways, or the standard way. It is the standard way, too, if
// rows are to cross as less than fp32, which was not measured. Between measured widths
// times are interpolated; beyond them they are taken to grow with the width. The answer depends on
// the arguments alone.
Decision decide(const RouteQuestion& question, const std::vector<MeasuredRoute>& measured);

// Returns the way with the least predicted time, or the standard way. `partitions`: the partitions
// to choose from, if the question leaves it open; its own must be among them. On the CPU there
// are no predictions. fits(route) tells whether there is memory for a route; it is asked before a
// route takes the place of the standard one. The answer depends on the arguments alone.
Decision predict_best(const RouteQuestion& question,
                      const std::vector<CountedPartition>& partitions,
                      const std::function<bool(const Route&)>& fits,
                      const MachineProfile& profile = machine());
// Does so with the question's own partition alone.
inline Decision predict_best(const RouteQuestion& question, const PartitionQuality& quality,
                             const std::function<bool(const Route&)>& fits,
                             const MachineProfile& profile = machine()) {
  return predict_best(question, {{question.route.partition, &quality}}, fits, profile);
}

// Returns the way that stayed when a training of the question's kind tried several, if one did and
// the question leaves the strategy open. If predictions choose the partition (on GPUs, if it is
// open), the training may have been on any; then the fastest is taken.
std::optional<MeasuredEpoch> tried_best(const RouteQuestion& question,
                                        const std::vector<MeasuredEpoch>& measured);

// Returns the kind of training that the question asks for, on its route's partition.
TrainingKind training_kind(const RouteQuestion& question);

// Returns the ways that training tries on the question's partition: the route's own first, then
// those of `possible` that the question allows. On GPUs, for which `quality` has the counts:
// pipelined also with a pass more and a pass less than its schedule's at the widest rows, unless
// sums must be exact, and partial only where it is predicted to take less than kHopeful times as
// long as pipelined.
std::vector<TrialWay> trial_ways(const RouteQuestion& question,
                                 const std::vector<Strategy>& possible,
                                 const PartitionQuality* quality,
                                 const MachineProfile& profile = machine());
constexpr double kHopeful = 1.1;

}  // namespace plait
