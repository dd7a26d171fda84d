#include "plait/plan/choose.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace plait {
namespace {

constexpr auto kEdges = PartitionScheme::edges, kClusters = PartitionScheme::clusters;
const std::vector<Strategy> kOnGpus{Strategy::pipelined, Strategy::partial, Strategy::bulk,
                                    Strategy::get};

using Routes = std::vector<MeasuredRoute>;
using Qualities = std::map<PartitionScheme, PartitionQuality>;

bool always(const Route&) { return true; }

RouteQuestion open_question(bool gpu, std::vector<std::uint64_t> widths) {
  return {.route = {.strategy = gpu ? Strategy::pipelined : Strategy::bulk, .gpu = gpu},
          .open_strategy = true,
          .open_partition = true,
          .ranks = 2,
          .widths = std::move(widths),
          .times = kOften};
}

Choice chosen(const RouteQuestion& q, const Routes& kept, const Qualities& counted = {},
              const std::function<bool(const Route&)>& fits = always) {
  const auto counts = [&](PartitionScheme scheme) {
    const auto found = counted.find(scheme);
    return found == counted.end() ? nullptr : &found->second;
  };
  return choose(q, {.routes = kept, .note = {}}, counts, fits, MachineProfile{});
}

// A measurement of y = A x.
MeasuredRoute sum(Strategy strategy, PartitionScheme partition, std::uint64_t width, double ms) {
  return {.kind = {.widths = {width}}, .partition = partition, .way = {strategy}, .ms = ms};
}

// Two even parts of many edges; each is brought `halo` rows.
PartitionQuality even_parts(std::uint64_t halo) {
  PartQuality part{.vertices = 1000000,
                   .edges = 10000000,
                   .remote_edges = halo * 4,
                   .halo_rows = halo,
                   .dense_rows = halo,
                   .summed = {}};
  part.summed.rows = halo, part.summed.kept_edges = part.edges;
  return {{part, part}};
}

TEST(Choose, KeepsTheStandardWayWhereNothingIsKnown) {
  RouteQuestion q = open_question(false, {64});
  const Choice choice = chosen(q, {});
  EXPECT_EQ(choice.route.strategy, Strategy::bulk);
  EXPECT_EQ(choice.route.partition, kEdges);
  EXPECT_TRUE(choice.alternatives.empty() && choice.trials.empty());
  EXPECT_EQ(choice.reasons.at(0),
            "strategy bulk, partition edges: nothing was measured for this graph; see plait tune");
  q.ranks = 1;
  EXPECT_EQ(chosen(q, {sum(Strategy::get, kEdges, 64, 1)}).route.strategy, Strategy::bulk);
  q.ranks = 2, q.open_strategy = q.open_partition = false;
  EXPECT_EQ(chosen(q, {}).reasons.at(0), "strategy bulk, partition edges: as asked for");
}

TEST(Choose, TakesTheFastestOverAllWidths) {
  const Routes measured{
      sum(Strategy::pipelined, kEdges, 16, 1), sum(Strategy::pipelined, kEdges, 128, 8),
      sum(Strategy::partial, kClusters, 16, 2), sum(Strategy::partial, kClusters, 128, 5)};
  EXPECT_EQ(chosen(open_question(true, {16}), measured).route.strategy, Strategy::pipelined);
  const Choice wide = chosen(open_question(true, {16, 128}), measured);
  EXPECT_EQ(wide.route.strategy, Strategy::partial);
  EXPECT_EQ(wide.route.partition, kClusters);
  EXPECT_TRUE(wide.measured);
  ASSERT_EQ(wide.alternatives.size(), 2u);
  EXPECT_DOUBLE_EQ(wide.alternatives[0].ms, 7);
  EXPECT_DOUBLE_EQ(wide.alternatives[1].ms, 9);
}

TEST(Choose, InterpolatesTheTimesOfOtherWidths) {
  const Routes measured{sum(Strategy::pipelined, kEdges, 16, 2),
                        sum(Strategy::pipelined, kEdges, 64, 8)};
  const auto ms = [&](std::uint64_t width) {
    return chosen(open_question(true, {width}), measured).alternatives.at(0).ms;
  };
  EXPECT_DOUBLE_EQ(ms(0), 2);
  EXPECT_DOUBLE_EQ(ms(1), 2);
  EXPECT_DOUBLE_EQ(ms(16), 2);
  EXPECT_DOUBLE_EQ(ms(40), 5);
  EXPECT_DOUBLE_EQ(ms(64), 8);
  EXPECT_DOUBLE_EQ(ms(128), 16);
}

TEST(Choose, KeepsTheStandardWayIfAnotherIsHardlyFaster) {
  Routes measured{sum(Strategy::pipelined, kEdges, 64, 1), sum(Strategy::bulk, kEdges, 64, 0.98)};
  EXPECT_EQ(chosen(open_question(true, {64}), measured).route.strategy, Strategy::pipelined);
  measured[1].ms = 0.96;
  EXPECT_EQ(chosen(open_question(true, {64}), measured).route.strategy, Strategy::bulk);
}

TEST(Choose, ChangesOnlyWhatIsOpen) {
  const Routes measured{sum(Strategy::pipelined, kEdges, 64, 4),
                        sum(Strategy::pipelined, kClusters, 64, 3),
                        sum(Strategy::bulk, kEdges, 64, 2), sum(Strategy::bulk, kClusters, 64, 1)};
  RouteQuestion q = open_question(true, {64});
  q.open_strategy = false;
  EXPECT_EQ(chosen(q, measured).route.strategy, Strategy::pipelined);
  EXPECT_EQ(chosen(q, measured).route.partition, kClusters);
  q.open_strategy = true, q.open_partition = false;
  EXPECT_EQ(chosen(q, measured).route.strategy, Strategy::bulk);
  EXPECT_EQ(chosen(q, measured).route.partition, kEdges);
}

TEST(Choose, TakesNoWayThatTheRunCannotGo) {
  Routes measured{sum(Strategy::pipelined, kEdges, 64, 9), sum(Strategy::partial, kEdges, 64, 1)};
  RouteQuestion q = open_question(true, {64});
  EXPECT_EQ(chosen(q, measured).route.strategy, Strategy::partial);
  q.rows = true;  // partial brings sums
  EXPECT_EQ(chosen(q, measured).route.strategy, Strategy::pipelined);
  q.rows = false, q.route.exact = true;  // partial sums in an order of its own
  EXPECT_EQ(chosen(q, measured).route.strategy, Strategy::pipelined);
  q.route.exact = false, q.route.transport = DeviceTransport::nvshmem;  // not measured
  EXPECT_FALSE(chosen(q, measured).measured);
  // On the CPU there is no pipeline, and every strategy sums in the same order.
  RouteQuestion cpu = open_question(false, {64});
  cpu.route.exact = true;
  measured.push_back(sum(Strategy::get, kClusters, 64, 5));
  measured.push_back(sum(Strategy::bulk, kEdges, 64, 6));
  EXPECT_EQ(chosen(cpu, measured).route.strategy, Strategy::get);
  EXPECT_EQ(chosen(cpu, measured).alternatives.size(), 2u);
  cpu.route.exact = false, cpu.route.wire = DType::bf16;  // measured rows were fp32
  EXPECT_TRUE(chosen(cpu, measured).alternatives.empty());
}

// A measurement of y = A x by strategy get with these settings.
MeasuredRoute sum_by(const GetTuning& get, PartitionScheme partition, std::uint64_t width,
                     double ms) {
  MeasuredRoute one = sum(Strategy::get, partition, width, ms);
  one.way.get = get;
  return one;
}

TEST(ChooseSettings, TakesThoseThatWereMeasuredToBeTheFastest) {
  const GetTuning few{.ps = 4}, many{.ps = 64, .dist = 1, .dw = 8};
  RouteQuestion q = open_question(true, {64});
  q.open_settings = true;
  const Routes measured{sum(Strategy::pipelined, kEdges, 64, 4),
                        sum(Strategy::get, kEdges, 64, 9),
                        sum(Strategy::pipelined, kEdges, 16, 2),
                        sum(Strategy::get, kEdges, 16, 9),
                        sum_by(few, kEdges, 64, 5),
                        sum_by(few, kEdges, 16, 1),
                        sum_by(many, kEdges, 64, 3),
                        sum_by(many, kEdges, 16, 3)};
  const Choice wide = chosen(q, measured);
  EXPECT_EQ(wide.route.strategy, Strategy::get);
  EXPECT_EQ(wide.route.get, many);
  EXPECT_EQ(wide.alternatives.size(), 4u);
  EXPECT_EQ(wide.reasons.at(0),
            "strategy get, partition edges, ps 64, dist 1, dw 8: by the times "
            "that plait tune measured, for the widths of this run:");
  q.widths = {16};
  EXPECT_EQ(chosen(q, measured).route.get, few);
  // As the only open part, too; then the default settings are what others are compared with.
  q.route.strategy = Strategy::get, q.open_strategy = q.open_partition = false;
  EXPECT_EQ(chosen(q, measured).route.get, few);
  EXPECT_EQ(chosen(q, {sum_by(few, kEdges, 16, 1)}).route.get, GetTuning{});
  EXPECT_EQ(chosen(q, {}).reasons.at(0), "strategy get, partition edges: as asked for");
  // Settings that are hardly faster are not worth it.
  EXPECT_EQ(chosen(q, {sum(Strategy::get, kEdges, 16, 1), sum_by(few, kEdges, 16, 0.98)}).route.get,
            GetTuning{});
  // What has no memory now gives way to the default settings.
  EXPECT_EQ(chosen(q, measured, {}, [](const Route& r) { return r.get.ps != 4; }).route.get,
            GetTuning{});
}

TEST(ChooseSettings, LeavesThoseThatWereGiven) {
  const GetTuning given{.ps = 2}, other{.ps = 32};
  RouteQuestion q = open_question(true, {64});
  q.route.strategy = Strategy::get, q.route.get = given, q.open_strategy = false;
  const Routes measured{sum(Strategy::get, kEdges, 64, 9), sum_by(other, kEdges, 64, 1),
                        sum(Strategy::get, kClusters, 64, 8), sum_by(given, kClusters, 64, 20)};
  const Choice choice = chosen(q, measured);
  EXPECT_EQ(choice.route.get, given);
  EXPECT_EQ(choice.route.partition, kClusters);  // by the times of the default settings
  EXPECT_EQ(choice.alternatives.size(), 2u);
  EXPECT_EQ(choice.reasons.back(),
            "settings of strategy get are as asked for; times are of the default ones");
  RouteQuestion defaults = q;
  defaults.route.get = {};
  EXPECT_EQ(chosen(defaults, measured).reasons.size(), 3u);  // the way, and two times
  q.open_partition = false;
  EXPECT_EQ(chosen(q, measured).reasons,
            std::vector<std::string>{"strategy get, partition edges, ps 2: as asked for"});
}

TEST(ChooseSettings, AreNotOnTheCpu) {
  RouteQuestion q = open_question(false, {64});
  q.open_settings = true;
  const Choice choice =
      chosen(q, {sum(Strategy::bulk, kEdges, 64, 9), sum_by({.ps = 4}, kEdges, 64, 1)});
  EXPECT_EQ(choice.route.strategy, Strategy::bulk);
  EXPECT_EQ(choice.alternatives.size(), 1u);
}

// A way that takes long would otherwise be the fastest that was measured.
TEST(Choose, TakesNoMeasuredWayWithoutATimeOfTheStandardOne) {
  const RouteQuestion q = open_question(false, {64});
  Routes measured{sum(Strategy::get, kClusters, 64, 5), sum(Strategy::bulk, kClusters, 64, 4)};
  const Choice choice = chosen(q, measured);
  EXPECT_EQ(choice.route.strategy, Strategy::bulk);
  EXPECT_EQ(choice.route.partition, kEdges);
  EXPECT_FALSE(choice.measured);
  EXPECT_EQ(choice.reasons,
            std::vector<std::string>{"strategy bulk, partition edges: plait tune has not measured "
                                     "it, but only other ways, none of which is taken without a "
                                     "comparison"});
  // At other widths alone it says nothing of theirs.
  measured.push_back(sum(Strategy::bulk, kEdges, 16, 1));
  EXPECT_EQ(chosen(q, measured).route.partition, kEdges);
  EXPECT_EQ(chosen(q, measured).alternatives.size(), 1u);
  measured.push_back(sum(Strategy::get, kClusters, 16, 0.5));
  EXPECT_EQ(chosen(q, measured).route.strategy, Strategy::get);
  // What has no memory has no time either.
  measured.pop_back(), measured.pop_back();
  const auto clusters_alone = [](const Route& route) { return route.partition == kClusters; };
  EXPECT_EQ(chosen(q, measured, {}, clusters_alone).route.partition, kClusters);
  // On GPUs predictions decide then.
  const Qualities both{{kEdges, even_parts(900000)}, {kClusters, even_parts(1000)}};
  const Choice on_gpus =
      chosen(open_question(true, {64}), {sum(Strategy::bulk, kEdges, 64, 0.001)}, both);
  EXPECT_EQ(on_gpus.route.partition, kClusters);
  EXPECT_EQ(on_gpus.reasons.at(1),
            "strategy pipelined, partition clusters: by predicted times, for "
            "the widths of this run:");
}

TEST(Choose, TakesTheStandardStrategyWhereAMeasuredOneHasNoMemory) {
  const RouteQuestion q = open_question(false, {64});
  const Routes measured{sum(Strategy::bulk, kEdges, 64, 9), sum(Strategy::get, kClusters, 64, 1)};
  const Choice choice = chosen(q, measured, {}, [](const Route&) { return false; });
  EXPECT_EQ(choice.route.strategy, Strategy::bulk);
  EXPECT_EQ(choice.route.partition, kClusters);
  EXPECT_EQ(choice.reasons.back(),
            "strategy get, partition clusters does not fit in memory: strategy bulk");
}

TEST(ChooseByTrials, TakesTheWayThatStayedInATrainingOfTheSameKind) {
  RouteQuestion q = open_question(false, {16, 7});
  q.model = "gcn";
  const RunKind kind = kind_of(q);
  RunKind other = kind;
  other.model = "sage";
  const Routes tried{{other, kEdges, {Strategy::replicate}, 1},
                     {kind, kEdges, {Strategy::get}, 3},
                     {kind, kEdges, {Strategy::bulk}, 2.9}};
  const Choice choice = chosen(q, tried);
  EXPECT_EQ(choice.route.strategy, Strategy::get);
  EXPECT_EQ(choice.reasons.size(), 3u);
  EXPECT_TRUE(choice.alternatives.empty());
  for (const auto& change : std::vector<std::function<void(RouteQuestion&)>>{
           [](RouteQuestion& a) { a.widths = {16}; }, [](RouteQuestion& a) { a.model = "gin"; },
           [](RouteQuestion& a) { a.route.exact = true; },
           [](RouteQuestion& a) { a.route.wire = DType::bf16; },
           [](RouteQuestion& a) { a.route.partition = kClusters; },
           [](RouteQuestion& a) { a.open_strategy = false; },
           [](RouteQuestion& a) { a.model = ""; }}) {
    RouteQuestion changed = q;
    change(changed);
    EXPECT_EQ(chosen(changed, tried).route.strategy, Strategy::bulk);
  }
}

// On GPUs predictions may have chosen any partition.
TEST(ChooseByTrials, TakesTheFastestPartitionThatWasTriedIfItIsOpen) {
  RouteQuestion q = open_question(true, {16, 7});
  q.model = "gcn";
  const RunKind kind = kind_of(q);
  const Routes tried{{kind, kEdges, {Strategy::pipelined}, 3},
                     {kind, kEdges, {Strategy::bulk}, 1},
                     {kind, kClusters, {Strategy::pipelined, 2}, 2},
                     {kind, kClusters, {Strategy::partial}, 1.5}};
  EXPECT_EQ(chosen(q, tried).route.partition, kClusters);
  EXPECT_EQ(chosen(q, tried).passes, 2);
  q.open_partition = false;
  EXPECT_EQ(chosen(q, tried).route.partition, kEdges);
  EXPECT_EQ(chosen(q, tried).passes, 0);
}

TEST(ChooseTrials, OnTheCpuAreTheStrategiesThatCanBeGone) {
  RouteQuestion q = open_question(false, {16});
  q.possible = {Strategy::bulk, Strategy::get, Strategy::replicate};
  const std::vector<TrialWay> all{{Strategy::bulk}, {Strategy::get}, {Strategy::replicate}};
  EXPECT_EQ(chosen(q, {}).trials, all);
  const Routes tuned{sum(Strategy::get, kEdges, 16, 1), sum(Strategy::bulk, kEdges, 16, 2)};
  EXPECT_TRUE(chosen(q, tuned).trials.empty());
  EXPECT_EQ(chosen(q, {tuned.front()}).trials, all);
  q.open_strategy = false;
  EXPECT_TRUE(chosen(q, {}).trials.empty());
}

TEST(ChooseTrials, OnGpusHaveOtherNumbersOfPasses) {
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
  q.possible = kOnGpus;
  const std::vector<TrialWay> ways = chosen(q, {}, {{kEdges, even}}).trials;
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
  EXPECT_EQ(chosen(q, {}, {{kEdges, even}}).trials,
            (std::vector<TrialWay>{{Strategy::pipelined}, {Strategy::bulk}}));
  q.route.exact = false;
  PartitionQuality dear = even;
  for (PartQuality& each : dear.parts)
    each.summed.sums = 100000, each.summed.summed_edges = 400000000;
  for (const TrialWay& way : chosen(q, {}, {{kEdges, dear}}).trials)
    EXPECT_NE(way.strategy, Strategy::partial);
}

TEST(ChooseByPrediction, TakesAnotherPartitionWhereItPays) {
  const PartitionQuality much = even_parts(900000), little = even_parts(1000);
  const Qualities both{{kEdges, much}, {kClusters, little}};
  RouteQuestion q = open_question(true, {64});
  EXPECT_EQ(chosen(q, {}, both).route.partition, kClusters);
  EXPECT_FALSE(chosen(q, {}, both).measured);
  // Not if it does not fit, is as good, is not open, or one sum had to repay the search.
  const auto edges_alone = [](const Route& route) { return route.partition == kEdges; };
  EXPECT_EQ(chosen(q, {}, both, edges_alone).route.partition, kEdges);
  EXPECT_EQ(chosen(q, {}, {{kEdges, much}, {kClusters, much}}).route.partition, kEdges);
  q.times = 1;
  EXPECT_EQ(chosen(q, {}, both).route.partition, kEdges);
  EXPECT_EQ(chosen(q, {}, both).alternatives.size(), 2u);
  q.times = kOften, q.open_partition = false;
  EXPECT_EQ(chosen(q, {}, both).route.partition, kEdges);
}

}  // namespace
}  // namespace plait
