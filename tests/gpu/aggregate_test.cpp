// Aggregation on GPUs by every strategy, and what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "tests/gpu/aggregate_checks.h"

namespace plait::test {
namespace {

// A width that no GPU has the memory for is refused on all ranks, and the room stays as it was.
const RankProgram kRefused("gpu aggregate after a refusal", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Case c(4);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  for (const Strategy strategy :
       {Strategy::pipelined, Strategy::partial, Strategy::get, Strategy::paged}) {
    Placed placed(world, c, partition, {.route = {.strategy = strategy}, .max_width = c.width});
    for (const std::uint64_t width : {std::uint64_t{1} << 40, std::uint64_t{1} << 62}) {
      bool refused = false;
      try {
        placed.reserve(width);
      } catch (const DoesNotFitError&) {
        refused = true;
      }
      expect(refused, fmt::format("{}: width {} is refused", to_string(strategy), width));
      placed.expect_right({.weighted = true}, 2e-6, std::string(to_string(strategy)));
    }
    placed.reserve(2 * c.width);
    placed.expect_right({.weighted = true}, 2e-6, std::string(to_string(strategy)));
  }
});

std::vector<Strategy> strategies_for(int ranks) {
  // NCCL wants one GPU per rank.
  if (ranks > gpu_count()) return {Strategy::pipelined, Strategy::get};
  return {Strategy::pipelined, Strategy::get, Strategy::bulk, Strategy::replicate};
}

const RankProgram kAggregate("gpu aggregate", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for (unsigned seed = 0; seed < 3; ++seed)
    check_case(world, Case(seed), strategies_for(world.size()));
  for (unsigned seed = 0; seed < 6; ++seed) check_passes(world, Case(seed), Strategy::pipelined);
});

const RankProgram kPartial("gpu partial and paged", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for (unsigned seed = 0; seed < 3; ++seed) check_case(world, Case(seed), kPartialAndPaged);
  for (unsigned seed = 0; seed < 6; ++seed) check_passes(world, Case(seed), Strategy::partial);
});

// Tests a little of all strategies whose kernels are ours.
const RankProgram kFew("gpu few", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Case c(1);
  const Partition partition = make_partition(PartitionScheme::hash, c.graph, world.size());
  for (const Strategy strategy :
       {Strategy::pipelined, Strategy::partial, Strategy::get, Strategy::paged}) {
    Placed placed(world, c, partition, {.route = {.strategy = strategy}, .max_width = c.width});
    for (const bool transposed : {false, true})
      placed.expect_right({true, true, true, transposed}, 2e-6,
                          fmt::format("few, {}", to_string(strategy)));
  }
  for (const std::uint32_t edges : {32u, 8192u})  // of a neighbour group
    Placed(world, c, partition,
           {.route = {.strategy = Strategy::pipelined},
            .max_width = c.width,
            .tuning = {.group_edges = edges}})
        .expect_right({true, true, true, false}, 2e-6, fmt::format("groups of {}", edges));
  check_passes(world, c, Strategy::pipelined);
});

const RankProgram kReduce("gpu all-reduce", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  check_reduce(world);
  check_reduce(world, {.route = {.strategy = Strategy::paged},
                       .max_width = 1});  // through the host's memory
});

TEST(GpuAggregate, SumsArraysOverRanks) {
  for (const int ranks : {2, 4}) {
    const Outcome outcome =
        run_job({.program = "gpu all-reduce", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(GpuAggregate, OneToFourRanksEqualThreeLoops) {
  const auto world = World::alone();
  for (unsigned seed = 0; seed < 6; ++seed) {
    check_case(*world, Case(seed), strategies_for(1));
    check_case(*world, Case(seed), kPartialAndPaged);
  }
  expect_on_ranks("gpu aggregate");
  expect_on_ranks("gpu partial and paged");
}

TEST(GpuAggregate, ARefusedWidthLeavesTheRoomThatThereWas) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome =
        run_job({.program = "gpu aggregate after a refusal", .ranks = ranks, .timeout_ms = 20000});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

// This is for compute-sanitizer, under which ranks wait for each other for long.
TEST(GpuAggregate, FewOnTwoRanks) {
  const Outcome outcome = run_job({.program = "gpu few", .ranks = 2, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

TEST(GpuAggregate, RefusesWhatDoesNotFit) {
  const auto world = World::alone();
  const Case c(2);
  const Partition partition = partition_by_vertices(c.graph.vertices(), 1);
  for (const Strategy strategy : {Strategy::pipelined, Strategy::paged})
    EXPECT_THROW(
        make_gpu_aggregator(*world, c.graph, false, partition,
                            {.route = {.strategy = strategy}, .max_width = std::uint64_t{1} << 40}),
        DoesNotFitError)
        << to_string(strategy);
}

TEST(GpuAggregate, PagedRowsCrossAsTheyAre) {
  const auto world = World::alone();
  const Case c(2);
  const Partition partition = partition_by_vertices(c.graph.vertices(), 1);
  EXPECT_THROW(make_gpu_aggregator(*world, c.graph, false, partition,
                                   {.route = {.strategy = Strategy::paged, .wire = DType::bf16}}),
               UsageError);
}

}  // namespace
}  // namespace plait::test
