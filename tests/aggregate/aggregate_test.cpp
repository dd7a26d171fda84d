// Aggregation across ranks against three loops in double precision over the whole graph.
#include "plait/aggregate/aggregate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/symmetric/rows.h"
#include "tests/aggregate/aggregate_case.h"
#include "tests/aggregate/extrema_check.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

void check_case(World& world, unsigned seed, const std::vector<Strategy>& strategies) {
  const Case c(seed);
  for (const PartitionScheme scheme : partition_schemes()) {
    const Partition partition = make_partition(scheme, c.graph, world.size());
    const auto x = own_part(c.x, partition, world.rank(), c.width);
    const auto scale = own_part(c.scale, partition, world.rank(), 1);
    for (const bool weighted : {false, true})
      for (const bool transposed : {false, true}) {
        const bool scaled = seed % 3 == 0;
        const Expected expected(c, {weighted, false, scaled, transposed});
        std::vector<float> first;
        for (const Strategy strategy : strategies) {
          const auto aggregator =
              make_aggregator(world,
                              make_graph_shards(c.graph, false, partition, world.rank(),
                                                {.halo = traits_of(strategy).cpu.halo}),
                              strategy, c.width);
          const Scaling scaling{nullptr, scaled ? scale.data() : nullptr, weighted};
          std::vector<float> y(x.size(), NAN);
          for (int repeat = 0; repeat < 2; ++repeat) {
            if (transposed)
              aggregator->backward(scaling, x.data(), y.data(), c.width);
            else
              aggregator->forward(scaling, x.data(), y.data(), c.width);
          }
          const auto name =
              fmt::format("seed {} {} {} weighted {} transposed {}", seed, to_string(scheme),
                          to_string(strategy), weighted, transposed);
          for (std::uint64_t r = 0; r < partition.size(world.rank()); ++r)
            for (std::uint64_t k = 0; k < c.width; ++k) {
              const std::uint64_t at = partition.vertex(world.rank(), r) * c.width + k;
              expect(std::abs(y[r * c.width + k] - expected.y[at]) <= 2e-6 * expected.bound[at],
                     name + fmt::format(": row {} column {} is {}, not {}", r, k,
                                        y[r * c.width + k], expected.y[at]));
            }
          if (first.empty()) first = y;
          expect(y.empty() || std::memcmp(first.data(), y.data(), y.size() * sizeof(float)) == 0,
                 name + ": not the bits of the first strategy");
        }
      }
  }
}

const std::vector<Strategy> kAll{Strategy::replicate, Strategy::bulk, Strategy::get};

const RankProgram kShared("aggregate", [](World& world) {
#ifdef PLAIT_SANITIZED
  constexpr unsigned kGraphs = 8;
#else
  constexpr unsigned kGraphs = 25;
#endif
  for (unsigned seed = 0; seed < kGraphs; ++seed) check_case(world, seed, kAll);
});

void check_extrema(World& world, const Case& c, Strategy strategy) {
  const Partition partition = make_partition(PartitionScheme::hash, c.graph, world.size());
  const auto aggregator = make_aggregator(world, c.graph, false, partition,
                                          {.route = {.strategy = strategy}, .max_width = c.width});
  check_extrema(world, c, partition, *aggregator, to_string(strategy));
}

const RankProgram kExtrema("aggregate extrema", [](World& world) {
  for (unsigned seed = 0; seed < 6; ++seed)
    for (const Strategy strategy : kAll) check_extrema(world, Case(seed), strategy);
});

TEST(Aggregate, ExtremaOnSeveralRanksEqualLoops) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome = run_job({"aggregate extrema", ranks, kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

// A width that no machine has the memory for is refused on all ranks, and the room stays as it was.
const RankProgram kRefused("aggregate after a refusal", [](World& world) {
  const Case c(4);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  const auto x = own_part(c.x, partition, world.rank(), c.width);
  for (const Strategy strategy : kAll) {
    if (strategy == Strategy::get && !world.one_host()) continue;
    const auto aggregator =
        make_aggregator(world,
                        make_graph_shards(c.graph, false, partition, world.rank(),
                                          {.halo = traits_of(strategy).cpu.halo}),
                        strategy, c.width);
    std::vector<float> y(x.size()), again(x.size());
    const auto sum = [&](std::vector<float>& out) {
      aggregator->forward({nullptr, nullptr, true}, x.data(), out.data(), c.width);
    };
    sum(y);
    for (const std::uint64_t width : {std::uint64_t{1} << 40, std::uint64_t{1} << 62}) {
      bool refused = false;
      try {
        aggregator->reserve(width);
      } catch (const DoesNotFitError&) {
        refused = true;
      }
      expect(refused, fmt::format("{}: width {} is refused", to_string(strategy), width));
      aggregator->reserve(c.width);
      sum(again);
      expect(y == again, fmt::format("{}: the width from before works", to_string(strategy)));
    }
    aggregator->reserve(2 * c.width);
    sum(again);
    expect(y == again, fmt::format("{}: a wider one works", to_string(strategy)));
  }
});

// From here on, this process may have at most so much shared memory.
void limit_shared_memory(rlim_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_FSIZE, &limit);
}

// Memory that seemed free cannot be had on one rank. All ranks get the old room back; if it cannot
// be had either, they are told so until it can.
const RankProgram kRunsOut("aggregate when memory runs out", [](World& world) {
  std::signal(SIGXFSZ, SIG_IGN);
  const Case c(4);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  const auto x = own_part(c.x, partition, world.rank(), c.width);
  const auto aggregator = make_aggregator(
      world, make_graph_shards(c.graph, false, partition, world.rank()), Strategy::bulk, c.width);
  std::vector<float> y(x.size()), again(x.size());
  const auto sum = [&](std::vector<float>& out) {
    aggregator->forward({}, x.data(), out.data(), c.width);
  };
  const auto refusal_of = [](const auto& work) {
    try {
      work();
    } catch (const DoesNotFitError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  sum(y);
  const std::uint64_t wide = std::uint64_t{1} << 16;  // some MiB
  if (world.rank() == 1) limit_shared_memory(1 << 20);
  const std::string first = refusal_of([&] { aggregator->reserve(wide); });
  expect(first.starts_with("rank 1: "), "what rank 1 lacks: " + first);
  sum(again);
  expect(y == again, "the width from before");

  if (world.rank() == 1) limit_shared_memory(0);
  expect(!refusal_of([&] { aggregator->reserve(wide); }).empty(), "refused without any memory");
  for (int call = 0; call < 2; ++call) {
    const std::string lost = refusal_of([&] { sum(again); });
    expect(lost.find("could then not be had again") != std::string::npos, "lost: " + lost);
  }
  limit_shared_memory(RLIM_INFINITY);
  aggregator->reserve(c.width);
  sum(again);
  expect(y == again, "the width from before, when there is memory again");
});

// Each rank on a host of its own: rows travel as messages.
const RankProgram kMessages("aggregate by messages", [](World& world) {
  expect(!world.one_host(), "several hosts");
  for (unsigned seed = 0; seed < 6; ++seed)
    check_case(world, seed, {Strategy::bulk, Strategy::replicate});
  try {
    const Case c(1);
    const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
    make_aggregator(world, make_graph_shards(c.graph, false, partition, world.rank()),
                    Strategy::get, 1);
    expect(false, "strategy get on several hosts is refused");
  } catch (const UsageError& error) {
    expect(std::string(error.what()).find("use strategy bulk") != std::string::npos, error.what());
  }
});

TEST(Aggregate, OneToFourRanksEqualThreeLoops) {
  for (unsigned seed = 0; seed < 60; ++seed) check_case(*World::alone(), seed, kAll);
  for (const int ranks : {2, 3, 4}) {
    const Outcome outcome = run_job({"aggregate", ranks, kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(Aggregate, SeveralHostsExchangeMessages) {
  for (const int ranks : {2, 3}) run_on_hosts("aggregate by messages", ranks);
}

// A rank's rows fit its host, but those of two ranks do not.
const RankProgram kTogetherTooMuch("two ranks per host are too much", [](World& world) {
  expect(world.ranks_of_host().size() == 2, "two ranks per host");
  SymmetricRows rows(world);
  try {
    rows.reserve(available_memory() / sizeof(float) / 5 * 3);
    expect(false, "rows of two ranks that do not fit together are refused");
  } catch (const DoesNotFitError&) {
  }
  rows.reserve(64);
});

TEST(Aggregate, RowsOfAllRanksOfAHostFitItTogether) {
  run_on_hosts("two ranks per host are too much", 4, 2);
}

TEST(Aggregate, ARefusedWidthLeavesTheRoomThatThereWas) {
  for (const int ranks : {1, 2, 3}) {
    const Outcome outcome = run_job({.program = "aggregate after a refusal", .ranks = ranks});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
  run_on_hosts("aggregate after a refusal", 2);
}

TEST(Aggregate, MemoryThatRunsOutIsToldOnAllRanks) {
  const Outcome outcome = run_job({.program = "aggregate when memory runs out", .ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

TEST(Aggregate, RefusesWiderRowsThanPlanned) {
  const Case c(2);
  const auto world = World::alone();
  const Partition partition = partition_by_vertices(c.graph.vertices(), 1);
  const auto aggregator =
      make_aggregator(*world, make_graph_shards(c.graph, false, partition, 0), Strategy::bulk, 3);
  std::vector<float> x(c.graph.vertices() * 4), y(x.size());
  EXPECT_THROW(aggregator->forward({}, x.data(), y.data(), 4), UsageError);
  aggregator->reserve(4);
  EXPECT_NO_THROW(aggregator->forward({}, x.data(), y.data(), 4));
}

TEST(Strategies, OfGpusAreRefusedOnTheCpu) {
  const Case c(2);
  const auto world = World::alone();
  const Partition partition = partition_by_vertices(c.graph.vertices(), 1);
  for (const Strategy strategy : {Strategy::pipelined, Strategy::partial, Strategy::paged})
    EXPECT_THROW(
        make_aggregator(*world, make_graph_shards(c.graph, false, partition, 0), strategy, c.width),
        UsageError)
        << to_string(strategy);
}

}  // namespace
}  // namespace plait::test
