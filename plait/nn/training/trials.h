// Trials of a training's ways while it runs (plan/optimiser.h): before an epoch the graph is placed
// anew if another way is to be tried, and after it the slowest rank's time is told.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "plait/plan/optimiser.h"
#include "plait/world/world.h"

namespace plait {

class Trials {
 public:
  // Collective. Replaces the training's graph by one that is placed in this way; `fits`: it was
  // placed so before. Returns the number of epochs that warm it up. Throws DoesNotFitError on all
  // ranks; then no graph is placed.
  using Place = std::function<int(const TrialWay& way, bool fits)>;

  // The first way is placed already, in `set_up` seconds on this rank, and takes `warm_up` epochs
  // to warm up. Collective if there are several ways. `world` outlives this.
  Trials(World& world, const std::vector<TrialWay>& ways, double set_up, int warm_up);

  // Both are collective until the trials have ended, and then do nothing.
  void before_epoch(const Place& place);
  // `seconds`: of this rank's step.
  void after_epoch(double seconds, int epochs_left);

  const Optimiser& optimiser() const { return optimiser_; }

 private:
  World& world_;
  Optimiser optimiser_;
  std::size_t placed_ = 0;  // the way that is placed now; the number of ways: none is
};

}  // namespace plait
