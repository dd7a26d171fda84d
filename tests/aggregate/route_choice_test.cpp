// The choice of a route on ranks: rank 0's answer, and its errors, are those of all.
#include "plait/aggregate/route_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plait/graph/build.h"
#include "plait/graph/generate.h"
#include "plait/symmetric/agreement.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

// Routes on GPUs are chosen by predictions, also where there are none.
GraphRun run_on(const Dataset& dataset, int ranks) {
  return {.dataset = [&]() -> const Dataset& { return dataset; },
          .question = {.route = resolved({.gpu = true}),
                       .open_strategy = true,
                       .open_partition = true,
                       .ranks = ranks,
                       .widths = {64},
                       .times = kOften,
                       .possible = {Strategy::pipelined, Strategy::bulk}},
          .plan = [](const Partition&, const Route&) { return MemoryPlan{}; },
          .seed = 0};
}

std::string text_of(const Choice& choice) {
  return fmt::format("{} {} {} {} {}\n{}", to_string(choice.route.strategy),
                     to_string(choice.route.partition), choice.passes, choice.trials.size(),
                     choice.alternatives.size(), fmt::join(choice.reasons, "\n"));
}

void check_choice(World& world) {
  const Dataset dataset{.name = "made",
                        .graph = build_csr(generate_rmat({.vertices = 512, .edges = 4096}))};
  for (const int ranks : {world.size(), world.size() + 2}) {
    if (ranks == 1) continue;  // nothing is counted
    GraphRun run = run_on(dataset, ranks);
    const Choice choice = choose(world, run);
    expect(
        choice.alternatives.size() == 6 && choice.reasons.size() == 7 && choice.trials.size() > 1,
        text_of(choice));
    std::string first = text_of(choice);
    share_first_list(world, first);
    expect(text_of(choice) == first, "the same choice on all ranks");
    expect(run.partitions.size() == (world.rank() == 0 ? 3 : 0), "rank 0 has counted partitions");
    for (const PartitionScheme scheme : {choice.route.partition, PartitionScheme::metis}) {
      const Partition found = chosen_partition(world, run, scheme);
      const Partition made = make_partition(scheme, dataset, ranks, run.seed);
      expect(run.partitions.empty(), "partitions are given back");
      for (std::uint64_t v = 0; v < dataset.vertices(); ++v)
        expect(found.owner(v) == made.owner(v), "the partition is that of its scheme");
    }
  }
}

const RankProgram kChoice("a choice", check_choice);

TEST(RouteChoice, IsThatOfRankZero) {
  for (const int ranks : {1, 3}) {
    const Outcome outcome = run_job({"a choice", ranks, kPatient});
    EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
  }
}

void check_failure(World& world) {
  const Dataset dataset;
  GraphRun run = run_on(dataset, world.size());
  run.dataset = [&]() -> const Dataset& {
    throw Error(fmt::format("no graph on rank {}", world.rank()));
  };
  const std::string error = failure_of([&] { choose(world, run); });
  expect(error == "rank 0: no graph on rank 0", error);
  world.barrier();
}

const RankProgram kFailure("a choice that fails", check_failure);

TEST(RouteChoice, FailsOnAllRanks) {
  const Outcome outcome = run_job({"a choice that fails", 3, kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

}  // namespace
}  // namespace plait::test
