#include "plait/plan/decide.h"

#include <gtest/gtest.h>

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
  cpu.route.gpu = true, cpu.route.exact = false, cpu.route.wire = DType::bf16;
  EXPECT_EQ(decide(cpu, measured).route.strategy, Strategy::partial);  // get moves fp32 alone
}

}  // namespace
}  // namespace plait
