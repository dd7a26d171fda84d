// Aggregation across ranks against three loops in double precision over the whole graph.
#include "plait/aggregate/aggregate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "plait/base/error.h"
#include "tests/aggregate/aggregate_case.h"
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
                                                {.halo = halo_for(strategy)}),
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
    expect(std::string(error.what()).find("use --strategy bulk") != std::string::npos,
           error.what());
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
  for (const int ranks : {2, 3}) {
    const int port = free_port();
    std::vector<Process> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      Environment environment = rank_environment("aggregate by messages", rank, ranks, port);
      environment["PLAIT_HOST_ID"] = fmt::format("host {}", rank);
      processes.emplace_back(environment);
    }
    for (Process& process : processes) {
      const Outcome outcome = process.wait();
      EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
    }
  }
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

TEST(Strategies, AreNamed) {
  for (const char* name : {"replicate", "bulk", "pipelined", "partial", "get", "paged", "auto"})
    EXPECT_EQ(to_string(parse_strategy(name)), name);
  EXPECT_THROW(parse_strategy("bulky"), UsageError);
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
