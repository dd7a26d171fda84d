#include "plait/nn/training/trials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plait/base/error.h"

namespace plait {
namespace {

constexpr Trials::Placed kPlaced{.warm_up = 0, .seconds = 1e-6};

// Places ways, of which some do not fit.
struct Placing {
  std::vector<Strategy> placed, refused;
  std::vector<Strategy> too_large;

  Trials::Place place() {
    return [this](const TrialWay& way, bool fits) -> Trials::Placed {
      if (std::ranges::find(too_large, way.strategy) != too_large.end()) {
        EXPECT_FALSE(fits);
        refused.push_back(way.strategy);
        throw DoesNotFitError("too large");
      }
      placed.push_back(way.strategy);
      return kPlaced;
    };
  }
};

const std::vector<TrialWay> kThree{{Strategy::bulk}, {Strategy::get}, {Strategy::replicate}};

TEST(Trials, PlaceTheBestWayAgainAfterOneThatDoesNotFit) {
  const auto world = World::alone();
  Trials trials(*world, kThree, kPlaced);
  Placing placing;
  placing.too_large = {Strategy::get};
  for (int epoch = 0; epoch < 100; ++epoch) {
    trials.before_epoch(placing.place());
    const bool replicates = !placing.placed.empty() && placing.placed.back() == Strategy::replicate;
    trials.after_epoch(replicates ? 2 : 1, 99 - epoch);
  }
  EXPECT_EQ(placing.refused, std::vector{Strategy::get});
  EXPECT_EQ(placing.placed, (std::vector{Strategy::replicate, Strategy::bulk}));
  EXPECT_TRUE(trials.optimiser().finished());
  EXPECT_EQ(trials.optimiser().trials()[1].left_out, "too large");
}

TEST(Trials, EndWithTheErrorIfTheBestWayCannotBePlacedAgain) {
  const auto world = World::alone();
  Trials trials(*world, {{Strategy::bulk}, {Strategy::get}}, kPlaced);
  Placing placing;
  trials.after_epoch(1, 99), trials.after_epoch(1, 98);
  trials.before_epoch(placing.place());
  EXPECT_EQ(placing.placed, std::vector{Strategy::get});
  trials.after_epoch(5, 97);  // clearly worse
  const Trials::Place full = [](const TrialWay&, bool fits) -> Trials::Placed {
    EXPECT_TRUE(fits);
    throw DoesNotFitError("memory is gone");
  };
  EXPECT_THROW(trials.before_epoch(full), DoesNotFitError);
}

TEST(Trials, DoNothingWithoutWays) {
  const auto world = World::alone();
  Trials trials(*world, {}, kPlaced);
  Placing placing;
  trials.before_epoch(placing.place());
  trials.after_epoch(1, 10);
  EXPECT_TRUE(placing.placed.empty());
}

}  // namespace
}  // namespace plait
