#include "plait/plan/optimiser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "plait/base/error.h"
#include "plait/base/random.h"

namespace plait {
namespace {

const std::vector<TrialWay> kWays{{Strategy::bulk}, {Strategy::replicate}, {Strategy::get}};

// A run of made times: seconds(way, epoch of that way).
struct MadeRun {
  Optimiser optimiser;
  std::vector<std::size_t> taken;  // the way of each epoch
  int set_ups = 1;

  MadeRun(const std::vector<TrialWay>& ways, int epochs, double set_up, int warm_up,
          const std::function<double(std::size_t, int)>& seconds)
      : optimiser(ways) {
    std::vector<int> count(ways.size(), 0);
    std::size_t placed = 0;
    optimiser.placed(set_up, warm_up);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      if (optimiser.wanted() != placed) {
        placed = optimiser.wanted(), ++set_ups;
        optimiser.placed(set_up, warm_up);
      }
      taken.push_back(placed);
      optimiser.took(seconds(placed, count[placed]++), epochs - epoch - 1);
    }
  }
};

TEST(Optimiser, FindsTheBestWayAndStays) {
  const double times[] = {2, 3, 1};
  const MadeRun run(kWays, 100, 0.5, 1, [&](std::size_t way, int) { return times[way]; });
  // The second way is left after one epoch that counts, as it is clearly worse.
  const std::vector<std::size_t> first{0, 0, 0, 1, 1, 2, 2, 2, 2};
  EXPECT_EQ(std::vector(run.taken.begin(), run.taken.begin() + 9), first);
  EXPECT_EQ(run.taken.back(), 2u);
  EXPECT_TRUE(run.optimiser.finished());
  EXPECT_EQ(run.optimiser.trials()[1].epochs, 2);
  EXPECT_EQ(run.set_ups, 3);
}

TEST(Optimiser, GoesBackToTheBestWay) {
  const double times[] = {2, 1, 3};
  const MadeRun run(kWays, 100, 0.5, 1, [&](std::size_t way, int) { return times[way]; });
  EXPECT_EQ(run.taken.back(), 1u);
  EXPECT_EQ(run.set_ups, 4);
}

TEST(Optimiser, DoesNotCountEpochsThatWarmUp) {
  const double times[] = {2, 1.5, 4};
  const auto seconds = [&](std::size_t way, int epoch) { return epoch < 3 ? 50.0 : times[way]; };
  const MadeRun run(kWays, 100, 0.5, 3, seconds);
  EXPECT_EQ(run.taken.back(), 1u);
  EXPECT_EQ(run.optimiser.trials()[0].seconds, (std::vector{2.0, 2.0}));
}

TEST(Optimiser, KeepsTheFirstWayWithinNoise) {
  const double times[] = {1, 0.97, 1.02};
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const auto seconds = [&](std::size_t way, int epoch) {  // up to 40% more, now and then
      const float u = uniform_float(Philox(seed)(way, static_cast<std::uint64_t>(epoch))[0]);
      return times[way] * (u > 0.8f ? 1.4 : 1);
    };
    const MadeRun run(kWays, 60, 0.1, 1, seconds);
    const std::vector<Trial>& trials = run.optimiser.trials();
    const std::size_t last = run.taken.back();
    // Whatever the noise does, the way that stays is the one whose least time is the least, or the
    // first if it is about as fast.
    for (const Trial& other : trials)
      EXPECT_LE(trials[last].least(), Optimiser::kBetter * other.least()) << seed;
    if (trials[0].least() <= 1) {
      EXPECT_EQ(last, 0u) << seed;
    }
  }
}

TEST(Optimiser, LeavesOutWhatCannotBeRepaid) {
  const double times[] = {1, 0.5, 0.5};
  const auto seconds = [&](std::size_t way, int) { return times[way]; };
  // Setting up takes 10 epochs, twice; at most a fifth of 100 epochs can be saved.
  const MadeRun dear(kWays, 100, 10, 1, seconds);
  EXPECT_EQ(dear.set_ups, 1);
  EXPECT_TRUE(dear.optimiser.finished());
  for (const std::size_t way : {1, 2})
    EXPECT_NE(dear.optimiser.trials()[way].left_out.find("setting up took 10000.0 ms"),
              std::string::npos);
  EXPECT_EQ(MadeRun(kWays, 200, 10, 1, seconds).taken.back(), 1u);
  // Few epochs repay nothing, however cheap a set-up is.
  EXPECT_EQ(MadeRun(kWays, 9, 0, 1, seconds).set_ups, 1);
}

TEST(Optimiser, EndsUnfinishedIfEpochsEnd) {
  const MadeRun run(kWays, 2, 0, 1, [](std::size_t, int) { return 1.0; });
  EXPECT_FALSE(run.optimiser.finished());
  EXPECT_EQ(run.optimiser.best(), 0u);
}

TEST(Optimiser, GoesOnWithoutAWayThatDoesNotFit) {
  Optimiser optimiser(kWays);
  optimiser.placed(0.1, 0);
  optimiser.took(1, 100), optimiser.took(1, 99);
  ASSERT_EQ(optimiser.wanted(), 1u);
  optimiser.refuse("too large");
  ASSERT_EQ(optimiser.wanted(), 2u);
  EXPECT_EQ(optimiser.trials()[1].left_out, "too large");
  optimiser.refuse("too large, too");
  EXPECT_EQ(optimiser.wanted(), 0u);
  EXPECT_TRUE(optimiser.finished());
  EXPECT_THROW(optimiser.refuse("even this one"), Error);  // the way that was to stay
}

TEST(Optimiser, NeedsNoTrialOfOneWay) {
  EXPECT_TRUE(Optimiser({}).finished());
  EXPECT_TRUE(Optimiser({{Strategy::bulk}}).finished());
  EXPECT_EQ(Optimiser({}).wanted(), 0u);
}

TEST(TrialWay, NamesAndShares) {
  EXPECT_EQ(name_of(TrialWay{Strategy::bulk}), "strategy bulk");
  EXPECT_EQ(name_of({Strategy::pipelined, 1}), "strategy pipelined, 1 pass");
  EXPECT_EQ(name_of({Strategy::pipelined, 3}), "strategy pipelined, 3 passes");
  EXPECT_TRUE(equal_shares(0).empty());
  EXPECT_EQ(equal_shares(4), (std::vector{0.25, 0.5, 0.75, 1.0}));
}

}  // namespace
}  // namespace plait
