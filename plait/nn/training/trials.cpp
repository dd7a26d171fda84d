#include "plait/nn/training/trials.h"

#include "plait/base/error.h"
#include "plait/world/gather.h"

namespace plait {

Trials::Trials(World& world, const std::vector<TrialWay>& ways, const Placed& first)
    : world_(world), optimiser_(ways) {
  if (!optimiser_.finished())
    optimiser_.placed(largest_of_all(world_, first.seconds), first.warm_up);
}

void Trials::before_epoch(const Place& place) {
  while (optimiser_.wanted() != placed_) {
    const std::size_t wanted = optimiser_.wanted();
    const Trial& trial = optimiser_.trials()[wanted];
    Placed placed{};
    try {
      placed = place(trial.way, trial.set_up.has_value());
    } catch (const DoesNotFitError& error) {
      if (optimiser_.finished()) throw;
      placed_ = optimiser_.trials().size();
      optimiser_.refuse(error.what());
      continue;
    }
    placed_ = wanted;
    optimiser_.placed(largest_of_all(world_, placed.seconds), placed.warm_up);
  }
}

void Trials::after_epoch(double seconds, int epochs_left) {
  if (optimiser_.finished()) return;
  optimiser_.took(largest_of_all(world_, seconds), epochs_left);
}

}  // namespace plait
