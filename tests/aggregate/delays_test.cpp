// Steps whose parts begin late at random on each rank: without either barrier of a step, a rank
// would sum rows of the wrong step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plait/aggregate/aggregate.h"
#include "plait/base/delay.h"
#include "tests/aggregate/aggregate_case.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

const RankProgram delayed("delayed steps", [](World& world) {
  const Case c(1);
  const Partition partition = make_partition(PartitionScheme::hash, c.graph, world.size());
  const Expected expected(c, {});
  const auto x = own_part(c.x, partition, world.rank(), c.width);
  for (const Strategy strategy : {Strategy::replicate, Strategy::bulk, Strategy::get}) {
    const auto aggregator =
        make_aggregator(world,
                        make_graph_shards(c.graph, false, partition, world.rank(),
                                          {.halo = traits_of(strategy).cpu.halo}),
                        strategy, c.width);
    switch_delays(static_cast<std::uint64_t>(world.rank()), std::chrono::milliseconds(4));
    for (int step = 1; step <= 40; ++step) {
      const auto factor = static_cast<float>(step);  // rows differ from step to step
      std::vector<float> rows(x), y(x.size());
      for (float& value : rows) value *= factor;
      aggregator->forward({}, rows.data(), y.data(), c.width);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const std::uint64_t at =
            partition.vertex(world.rank(), i / c.width) * c.width + i % c.width;
        expect(std::abs(y[i] - factor * expected.y[at]) <= 4e-6 * factor * expected.bound[at],
               fmt::format("{}, step {}: row {} is {}, not {}", to_string(strategy), step,
                           i / c.width, y[i], factor * expected.y[at]));
      }
    }
    switch_delays(0, {});
  }
});

TEST(DelayedSteps, KeepTheirRowsApart) {
  const Outcome outcome = run_job({.program = "delayed steps", .ranks = 3, .timeout_ms = 10000});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

}  // namespace
}  // namespace plait::test
