#include "plait/plan/decide.h"

#include <gtest/gtest.h>

#include <functional>

namespace plait {
namespace {

constexpr auto kEdges = PartitionScheme::edges, kClusters = PartitionScheme::clusters;

RouteQuestion open_question(bool gpu, std::vector<std::uint64_t> widths) {
  return {.route = {.strategy = gpu ? Strategy::pipelined : Strategy::bulk, .gpu = gpu},
          .open_strategy = true,
          .open_partition = true,
          .widths = std::move(widths)};
}

MeasuredRoute on_gpu(Strategy strategy, PartitionScheme partition, std::uint64_t width, double ms) {
  return {.strategy = strategy, .partition = partition, .width = width, .ms = ms};
}

TEST(Decide, KeepsTheStandardWayWhereNothingWasMeasured) {
  const RouteQuestion q = open_question(true, {64});
  const Decision decision = decide(q, {});
  EXPECT_EQ(decision.route.strategy, Strategy::pipelined);
  EXPECT_EQ(decision.route.partition, kEdges);
  EXPECT_TRUE(decision.alternatives.empty());
}

TEST(Decide, TakesTheFastestOverAllWidths) {
  const std::vector<MeasuredRoute> measured{
      on_gpu(Strategy::pipelined, kEdges, 16, 1), on_gpu(Strategy::pipelined, kEdges, 128, 8),
      on_gpu(Strategy::partial, kClusters, 16, 2), on_gpu(Strategy::partial, kClusters, 128, 5)};
  EXPECT_EQ(decide(open_question(true, {16}), measured).route.strategy, Strategy::pipelined);
  const Decision wide = decide(open_question(true, {16, 128}), measured);
  EXPECT_EQ(wide.route.strategy, Strategy::partial);
  EXPECT_EQ(wide.route.partition, kClusters);
  ASSERT_EQ(wide.alternatives.size(), 2u);
  EXPECT_DOUBLE_EQ(wide.alternatives[0].ms, 7);
  EXPECT_DOUBLE_EQ(wide.alternatives[1].ms, 9);
}

TEST(Decide, PredictsTheTimesOfOtherWidths) {
  const std::vector<MeasuredRoute> measured{on_gpu(Strategy::pipelined, kEdges, 16, 2),
                                            on_gpu(Strategy::pipelined, kEdges, 64, 8)};
  const auto ms = [&](std::uint64_t width) {
    return decide(open_question(true, {width}), measured).alternatives.at(0).ms;
  };
  EXPECT_DOUBLE_EQ(ms(0), 2);
  EXPECT_DOUBLE_EQ(ms(1), 2);
  EXPECT_DOUBLE_EQ(ms(16), 2);
  EXPECT_DOUBLE_EQ(ms(40), 5);
  EXPECT_DOUBLE_EQ(ms(64), 8);
  EXPECT_DOUBLE_EQ(ms(128), 16);
}

TEST(Decide, KeepsTheStandardWayIfAnotherIsHardlyFaster) {
  std::vector<MeasuredRoute> measured{on_gpu(Strategy::pipelined, kEdges, 64, 1),
                                      on_gpu(Strategy::bulk, kEdges, 64, 0.98)};
  EXPECT_EQ(decide(open_question(true, {64}), measured).route.strategy, Strategy::pipelined);
  measured[1].ms = 0.96;
  EXPECT_EQ(decide(open_question(true, {64}), measured).route.strategy, Strategy::bulk);
}

TEST(Decide, ChangesOnlyWhatIsOpen) {
  const std::vector<MeasuredRoute> measured{
      on_gpu(Strategy::pipelined, kEdges, 64, 4), on_gpu(Strategy::pipelined, kClusters, 64, 3),
      on_gpu(Strategy::bulk, kEdges, 64, 2), on_gpu(Strategy::bulk, kClusters, 64, 1)};
  RouteQuestion q = open_question(true, {64});
  q.open_strategy = false;
  EXPECT_EQ(decide(q, measured).route.strategy, Strategy::pipelined);
  EXPECT_EQ(decide(q, measured).route.partition, kClusters);
  q.open_strategy = true, q.open_partition = false;
  EXPECT_EQ(decide(q, measured).route.strategy, Strategy::bulk);
  EXPECT_EQ(decide(q, measured).route.partition, kEdges);
}

TEST(Decide, TakesNoWayThatTheRunCannotGo) {
  std::vector<MeasuredRoute> measured{on_gpu(Strategy::pipelined, kEdges, 64, 9),
                                      on_gpu(Strategy::partial, kEdges, 64, 1)};
  RouteQuestion q = open_question(true, {64});
  EXPECT_EQ(decide(q, measured).route.strategy, Strategy::partial);
  q.rows = true;  // partial brings sums
  EXPECT_EQ(decide(q, measured).route.strategy, Strategy::pipelined);
  q.rows = false, q.route.exact = true;  // partial sums in an order of its own
  EXPECT_EQ(decide(q, measured).route.strategy, Strategy::pipelined);
  q.route.exact = false, q.route.transport = DeviceTransport::nvshmem;  // not measured
  EXPECT_TRUE(decide(q, measured).alternatives.empty());
  // On the CPU there is no pipeline, and every strategy sums in the same order.
  RouteQuestion cpu = open_question(false, {64});
  cpu.route.exact = true;
  measured.push_back(on_gpu(Strategy::get, kClusters, 64, 5));
  EXPECT_EQ(decide(cpu, measured).route.strategy, Strategy::get);
  EXPECT_EQ(decide(cpu, measured).alternatives.size(), 1u);
  cpu.route.exact = false, cpu.route.wire = DType::bf16;  // measured rows were fp32
  EXPECT_TRUE(decide(cpu, measured).alternatives.empty());
}

TEST(TriedBest, TakesTheWayThatStayedInATrainingOfTheSameKind) {
  RouteQuestion q = open_question(false, {16, 7});
  q.model = "gcn";
  const TrainingKind kind = training_kind(q);
  TrainingKind other = kind;
  other.model = "sage";
  const std::vector<MeasuredEpoch> tried{
      {other, {Strategy::replicate}, 1}, {kind, {Strategy::get}, 3}, {kind, {Strategy::bulk}, 2.9}};
  EXPECT_EQ(tried_best(q, tried), tried[1]);
  EXPECT_FALSE(tried_best(q, {}).has_value());
  for (const auto& change : std::vector<std::function<void(RouteQuestion&)>>{
           [](RouteQuestion& a) { a.widths = {16}; }, [](RouteQuestion& a) { a.model = "gin"; },
           [](RouteQuestion& a) { a.route.exact = true; },
           [](RouteQuestion& a) { a.route.wire = DType::bf16; },
           [](RouteQuestion& a) { a.route.partition = kClusters; },
           [](RouteQuestion& a) { a.open_strategy = false; }}) {
    RouteQuestion changed = q;
    change(changed);
    EXPECT_FALSE(tried_best(changed, tried).has_value());
  }
}

// On GPUs predictions may have chosen any partition.
TEST(TriedBest, TakesTheFastestPartitionThatWasTriedIfItIsOpen) {
  RouteQuestion q = open_question(true, {16, 7});
  q.model = "gcn";
  TrainingKind edges = training_kind(q), clusters = edges;
  clusters.partition = kClusters;
  const std::vector<MeasuredEpoch> tried{{edges, {Strategy::pipelined}, 3},
                                         {edges, {Strategy::bulk}, 1},
                                         {clusters, {Strategy::pipelined, 2}, 2},
                                         {clusters, {Strategy::partial}, 1.5}};
  EXPECT_EQ(tried_best(q, tried), tried[2]);
  q.open_partition = false;
  EXPECT_EQ(tried_best(q, tried), tried[0]);
}

TEST(TrialWays, OnTheCpuAreTheStrategiesThatCanBeGone) {
  const std::vector<Strategy> possible{Strategy::bulk, Strategy::get, Strategy::replicate};
  const std::vector<TrialWay> ways = trial_ways(open_question(false, {16}), possible, nullptr);
  EXPECT_EQ(ways,
            (std::vector<TrialWay>{{Strategy::bulk}, {Strategy::get}, {Strategy::replicate}}));
}

TEST(TrialWays, OnGpusHaveOtherNumbersOfPasses) {
  const std::vector<Strategy> possible{Strategy::pipelined, Strategy::partial, Strategy::bulk,
                                       Strategy::get};
  // Half of many edges are remote, and no sums are fewer than rows.
  PartQuality part{.vertices = 100000,
                   .edges = 40000000,
                   .remote_edges = 20000000,
                   .halo_rows = 100000,
                   .dense_rows = 100000,
                   .summed = {}};
  part.summed.rows = part.dense_rows, part.summed.kept_edges = part.edges;
  const PartitionQuality even{{part, part}};
  RouteQuestion q = open_question(true, {64});
  const std::vector<TrialWay> ways = trial_ways(q, possible, &even, MachineProfile{});
  ASSERT_GE(ways.size(), 4u);
  EXPECT_EQ(ways.front(), TrialWay{Strategy::pipelined});
  std::vector<int> passes;
  for (const TrialWay& way : ways) {
    EXPECT_NE(way.strategy, Strategy::get);
    if (way.passes > 0) passes.push_back(way.passes);
  }
  EXPECT_TRUE(passes.size() == 1 || (passes.size() == 2 && passes[1] == passes[0] + 2));
  // Exact sums keep to one order, and sums that would all be made before they cross are not tried.
  q.route.exact = true;
  EXPECT_EQ(trial_ways(q, possible, &even, MachineProfile{}),
            (std::vector<TrialWay>{{Strategy::pipelined}, {Strategy::bulk}}));
  q.route.exact = false;
  PartitionQuality dear = even;
  for (PartQuality& each : dear.parts)
    each.summed.sums = 100000, each.summed.summed_edges = 400000000;
  for (const TrialWay& way : trial_ways(q, possible, &dear, MachineProfile{}))
    EXPECT_NE(way.strategy, Strategy::partial);
}

TEST(PredictBest, TakesAnotherPartitionWhereItPays) {
  const auto quality = [](std::uint64_t halo) {
    PartQuality part{.vertices = 1000000,
                     .edges = 10000000,
                     .remote_edges = halo * 4,
                     .halo_rows = halo,
                     .dense_rows = halo,
                     .summed = {}};
    part.summed.rows = halo, part.summed.kept_edges = part.edges;
    return PartitionQuality{{part, part}};
  };
  const PartitionQuality much = quality(900000), little = quality(1000);
  RouteQuestion q = open_question(true, {64});
  const auto always = [](const Route&) { return true; };
  const std::vector<CountedPartition> both{{kEdges, &much}, {kClusters, &little}};
  EXPECT_EQ(predict_best(q, both, always, MachineProfile{}).route.partition, kClusters);
  // Not if it does not fit, is as good, or is not open.
  const auto edges_alone = [](const Route& route) { return route.partition == kEdges; };
  EXPECT_EQ(predict_best(q, both, edges_alone, MachineProfile{}).route.partition, kEdges);
  EXPECT_EQ(predict_best(q, {{kEdges, &much}, {kClusters, &much}}, always, MachineProfile{})
                .route.partition,
            kEdges);
  q.open_partition = false;
  EXPECT_EQ(predict_best(q, both, always, MachineProfile{}).route.partition, kEdges);
}

}  // namespace
}  // namespace plait
