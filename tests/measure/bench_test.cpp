// The check that a benchmark makes before it times anything must find what is wrong.
#include "plait/measure/bench.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/aggregate/aggregate_case.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

TEST(Bench, FindsWhatIsWrong) {
  const Csr32 graph = Case(3).graph;
  const AnyCsr any = graph;
  const Partition partition = partition_by_vertices(graph.vertices(), 1);
  constexpr std::uint64_t kWidth = 7;
  std::vector<float> y(graph.vertices() * kWidth);
  for (std::uint64_t i = 0; i < graph.vertices(); ++i)
    for (const std::uint64_t j : graph.row(i))
      for (std::uint64_t k = 0; k < kWidth; ++k) y[i * kWidth + k] += bench_feature(j, k);
  EXPECT_LT(worst_error(any, partition, 0, kWidth, y.data()), 1e-6);
  for (std::uint64_t i = 0; i < y.size(); ++i) {
    const float right = y[i];
    for (const float wrong : {NAN, INFINITY, right * 1.001F + 1e-4F, right + 1.0F}) {
      y[i] = wrong;
      EXPECT_GT(worst_error(any, partition, 0, kWidth, y.data()), 5e-4) << i << " " << wrong;
    }
    y[i] = right;
  }
}

const RankProgram kBench("aggregate bench", [](World& world) {
  const Case c(8);
  const AnyCsr graph = c.graph;
  for (const PartitionScheme scheme : {PartitionScheme::edges, PartitionScheme::hash})
    for (const Strategy strategy : {Strategy::bulk, Strategy::get}) {
      const Partition partition = make_partition(scheme, graph, world.size());
      const auto aggregator = make_aggregator(world, graph, false, partition,
                                              {.route = {.strategy = strategy}, .max_width = 1});
      const auto bench = make_cpu_bench(world, graph, partition, *aggregator, 19);
      expect(bench->check() < 1e-5, "the sums are right");
      const Times times = bench->time_steps({.repetitions = 3, .seconds = 1e-3});
      expect(times.ms.size() == 3 && times.least() > 0 && times.least() <= times.median() &&
                 times.median() <= times.most(),
             "times are in order");
    }
});

TEST(Bench, ChecksAndTimesOnSeveralRanks) {
  for (const int ranks : {1, 3}) {
    const Outcome outcome = run_job({"aggregate bench", ranks, kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

}  // namespace
}  // namespace plait::test
