// Tries ways of moving rows while a training runs (plan/optimiser.h): places the graph anew before
// an epoch if another way is to be tried, and tells the optimiser the slowest rank's time after it.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "plait/plan/optimiser.h"
#include "plait/world/world.h"

namespace plait {

class Trials {
 public:
  // The epochs that warm a placed graph up, and the seconds that placing it took on this rank.
  struct Placed {
    int warm_up;
    double seconds;
  };
  // Collective. Replaces the training's graph by a graph that is placed for this way; `fits`: it
  // was placed so before. Throws DoesNotFitError on all ranks; then no graph is placed.
  using Place = std::function<Placed(const TrialWay& way, bool fits)>;

  // `first`: the placing of the first way, which is placed already. Collective if there are several
  // ways. `world` outlives this.
  Trials(World& world, const std::vector<TrialWay>& ways, const Placed& first);

  // Both are collective until the trials have ended, and then do nothing.
  void before_epoch(const Place& place);
  // `seconds`: the time of this rank's step.
  void after_epoch(double seconds, int epochs_left);

  const Optimiser& optimiser() const { return optimiser_; }

 private:
  World& world_;
  Optimiser optimiser_;
  std::size_t placed_ = 0;  // the way that is placed now; the number of ways: none is
};

}  // namespace plait
