// A step that fails anywhere, on one rank or on all: the next result is right, or an error on every
// rank, and the one after that is right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plait/aggregate/aggregate.h"
#include "plait/base/fault.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"
#include "tests/aggregate/aggregate_case.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

class Steps {
 public:
  Steps(World& world, Strategy strategy)
      : world_(world),
        case_(1),
        partition_(make_partition(PartitionScheme::hash, case_.graph, world.size())),
        expected_(case_, {}),
        x_(own_part(case_.x, partition_, world.rank(), case_.width)),
        aggregator_(make_aggregator(world,
                                    make_graph_shards(case_.graph, false, partition_, world.rank(),
                                                      {.halo = traits_of(strategy).cpu.halo}),
                                    strategy, case_.width)) {}

  // Aggregates rows that differ from step to step. Returns the error, or nothing for a right
  // result.
  std::string step() {
    const float factor = static_cast<float>(++number_);
    std::vector<float> rows(x_), y(x_.size(), -1);
    for (float& value : rows) value *= factor;
    const std::string error =
        failure_of([&] { aggregator_->forward({}, rows.data(), y.data(), case_.width); });
    for (std::size_t i = 0; error.empty() && i < y.size(); ++i) {
      const std::uint64_t at =
          partition_.vertex(world_.rank(), i / case_.width) * case_.width + i % case_.width;
      expect(std::abs(y[i] - factor * expected_.y[at]) <= 4e-6 * factor * expected_.bound[at],
             fmt::format("step {}: row {} is {}, not {}", number_, i / case_.width, y[i],
                         factor * expected_.y[at]));
    }
    return error;
  }

 private:
  World& world_;
  const Case case_;
  const Partition partition_;
  const Expected expected_;
  const std::vector<float> x_;
  std::unique_ptr<Aggregator> aggregator_;
  int number_ = 0;
};

const RankProgram kFaults("step faults", [](World& world) {
  for (const Strategy strategy : {Strategy::replicate, Strategy::bulk, Strategy::get})
    for (const bool everywhere : {false, true}) {
      bool came = true;
      int number = 0;
      for (; came; ++number) {
        Steps steps(world, strategy);
        expect(steps.step().empty(), "the first step");
        const bool fails = everywhere || world.rank() == 1;
        if (fails) switch_fault(Fault::memory, number);
        steps.step();
        const bool mine = fails && !take_back_fault();
        bool refused = !steps.step().empty();
        // The rank that failed before the others met it is one meeting behind for good.
        const bool behind = refused && mine;
        for (int k = 0; k < 3; ++k)
          expect(refused != steps.step().empty(), "some later results are right, others refused");
        if (behind) steps.step();
        const auto fired = gather_values(world, mine), all = gather_values(world, refused);
        came = std::ranges::find(fired, true) != fired.end();
        expect(std::ranges::find(all, !refused) == all.end(), "a rank got a result, another none");
        expect(!refused || !everywhere, "a failure of all ranks is remembered");
      }
      expect(number > 3, fmt::format("a step has {} parts", number));
    }
});

// All ranks are told in a step what one of them lacked before they met in it.
const RankProgram kFaultBeforeMeeting("a fault before a meeting", [](World& world) {
  for (const Strategy strategy : {Strategy::bulk, Strategy::get})
    for (const int number : {0, 1}) {
      Steps steps(world, strategy);
      expect(steps.step().empty(), "the first step");
      if (world.rank() == 1) switch_fault(Fault::memory, number);
      const std::string error = steps.step();
      expect(error == "rank 1: no memory, for a test", fmt::format("part {}: {}", number, error));
      take_back_fault();
      for (int k = 0; k < 3; ++k) expect(steps.step().empty(), "a later step");
    }
});

TEST(StepFaults, BeforeRanksMeetAreEveryones) {
  const Outcome outcome =
      run_job({.program = "a fault before a meeting", .ranks = 3, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

// A graph is placed on all ranks or on none.
const RankProgram kPlacingFails("placing fails", [](World& world) {
  const Case c(1);
  const Partition partition = make_partition(PartitionScheme::hash, c.graph, world.size());
  const auto place = [&] {
    make_aggregator(world, c.graph, false, partition,
                    {.route = {.strategy = Strategy::bulk}, .max_width = c.width});
  };
  for (const Fault fault : {Fault::refusal, Fault::memory, Fault::device})
    for (int rank = 0; rank < world.size(); ++rank) {
      if (world.rank() == rank) switch_fault(fault, 0);
      const std::string error = failure_of(place);
      take_back_fault();
      expect(error.starts_with(fmt::format("rank {}: ", rank)), "placing: " + error);
      place();
    }
});

TEST(StepFaults, AGraphIsPlacedOnAllRanksOrOnNone) {
  const Outcome outcome = run_job({.program = "placing fails", .ranks = 3, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

TEST(StepFaults, TheNextResultIsRightOrAnErrorOnAllRanks) {
  const Outcome outcome = run_job({.program = "step faults", .ranks = 3, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

}  // namespace
}  // namespace plait::test
