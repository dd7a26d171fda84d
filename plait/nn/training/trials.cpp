#include "plait/nn/training/trials.h"

#include "plait/base/error.h"
#include "plait/base/timer.h"
#include "plait/world/gather.h"

namespace plait {

Trials::Trials(World& world, const std::vector<TrialWay>& ways, double set_up, int warm_up)
    : world_(world), optimiser_(ways) {
  if (!optimiser_.finished()) optimiser_.placed(largest_of_all(world_, set_up), warm_up);
}

void Trials::before_epoch(const Place& place) {
  while (optimiser_.wanted() != placed_) {
    const std::size_t wanted = optimiser_.wanted();
    const Trial& trial = optimiser_.trials()[wanted];
    const Stopwatch watch;
    int warm_up = 0;
    try {
      warm_up = place(trial.way, trial.set_up.has_value());
    } catch (const DoesNotFitError& error) {
      if (optimiser_.finished()) throw;
      placed_ = optimiser_.trials().size();
      optimiser_.refuse(error.what());
      continue;
    }
    placed_ = wanted;
    optimiser_.placed(largest_of_all(world_, watch.seconds()), warm_up);
  }
}

void Trials::after_epoch(double seconds, int epochs_left) {
  if (optimiser_.finished()) return;
  optimiser_.took(largest_of_all(world_, seconds), epochs_left);
}

}  // namespace plait
