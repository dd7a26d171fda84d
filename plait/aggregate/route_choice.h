// Chooses what a user left open of a run's route (plan/decide.h), by the times that plait tune has
// kept for the graph or, on GPUs, by predicted ones; and says why. The command line and Python
// share it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/plan/decide.h"
#include "plait/plan/memory_plan.h"

namespace plait {

// The run that a route is chosen for.
struct ChoiceCase {
  RouteQuestion question;
  int ranks = 1;  // in all
  int here = 1;   // on the host of the first rank
  // Returns the memory of the run by a route, on one rank.
  std::function<MemoryPlan(const Partition&, const Route&)> plan;
  double times = 1;    // that the question's sums are made
  bool tries = false;  // training may try ways (plan/optimiser.h)
};

// Tells whether a choice will look at the dataset's graph: if anything is open, and times may be
// known. Else the dataset may be empty.
bool looks_at_graph(const ChoiceCase& run);

// The way in which a choice is explained, line by line.
struct ChoiceListener {
  std::function<void(const std::string&)> reason;
  std::function<void(const std::string&)> warning;  // measurements that cannot be used
};

// A decision in progress, on one rank.
class RouteChoice {
 public:
  // `dataset` outlives the choice. Only its graph matters.
  RouteChoice(const Dataset& dataset, ChoiceCase run, ChoiceListener listener);

  // Returns the route that plait tune's times choose, or the trials of an earlier training. If that
  // leaves the strategy to predictions, by_prediction() is to follow.
  Route by_measurement();
  bool predicts() const { return predicts_; }
  // Returns the strategy of the route that by_measurement() chose, or the standard one if it does
  // not fit. `partition` is the route's. `free`: bytes of each rank's GPU, or of the first rank's
  // host on the CPU; nothing if they are not known.
  Strategy that_fits(const Route& known, const Partition& partition,
                     const std::vector<std::uint64_t>& free);
  // Tells whether ways are to be tried, and the passes that earlier trials chose.
  bool tries() const { return tries_; }
  int passes() const { return passes_; }
  // Returns the ways that training may try, if it tries, beginning with a route that was decided.
  std::vector<TrialWay> trials(const Route& decided, const Partition& partition,
                               const std::vector<Strategy>& possible) const;
  // Returns the route that predicted times choose; `partition` is of the standard one. `free`:
  // bytes of each rank's GPU; nothing if they are not known. `seed`: of other partitions.
  Route by_prediction(const Partition& partition, const std::vector<std::uint64_t>& free,
                      std::uint64_t seed);

  // Returns the ways that were compared, by time, ascending; nothing if no time was known.
  const std::vector<Alternative>& alternatives() const { return alternatives_; }

 private:
  std::vector<PartitionScheme> other_partitions(const PartitionQuality& standard) const;
  Route by_trials(const MeasuredEpoch& best, const std::vector<MeasuredEpoch>& epochs);
  void explain(const Decision& decision, const std::string& why);

  const Dataset& dataset_;
  ChoiceCase run_;
  ChoiceListener listener_;
  std::vector<Alternative> alternatives_;
  bool tries_;  // once by_measurement() was called: ways are to be tried
  bool predicts_ = false;
  int passes_ = 0;
};

// Returns the key of measurements on this graph by so many ranks, `here` of them on this host. On
// GPUs (`gpu`), they are of the current one's kind.
MeasuredKey measured_key(const Dataset& dataset, bool gpu, int ranks, int here);
// Returns the free bytes of the GPUs that so many ranks of this host would use; nothing if there
// are too few.
std::vector<std::uint64_t> free_on_gpus(int ranks);

}  // namespace plait
