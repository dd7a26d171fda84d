// Pushes to owners on CPU ranks: results, refusals, lost ranks, delays, ranks on several hosts.
#include "plait/exchange/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "plait/base/delay.h"
#include "tests/exchange/messages_case.h"

namespace plait::test {
namespace {

template <class T>
struct OnCpu {
  Pushed operator()(Messages& messages, std::vector<T>& values, std::vector<std::uint32_t>& marks,
                    Merge how, std::uint64_t word) const {
    return messages.push(std::span(values), marks, how, word);
  }
};

std::unique_ptr<Exchange> exchange_of(World& world, const Csr32& graph, const Partition& partition,
                                      Strategy strategy = Strategy::bulk) {
  return make_exchange(
      world, graph, false, partition,
      {.route = {.strategy = strategy}, .shards = {.slot_vertices = true}, .max_width = 1});
}

void check_graph(World& world, const Csr32& graph, PartitionScheme scheme, Strategy strategy) {
  const Partition partition = make_partition(scheme, graph, world.size());
  const auto exchange = exchange_of(world, graph, partition, strategy);
  check_all_pushes<OnCpu>(world, *exchange, partition,
                          [](auto span) { return std::vector(span.begin(), span.end()); });
}

const RankProgram pushes("pushes", [](World& world) {
  check_graph(world, random_csr<std::uint32_t>(70, 300, 1), PartitionScheme::hash, Strategy::bulk);
  check_graph(world, random_csr<std::uint32_t>(257, 4000, 2), PartitionScheme::edges,
              Strategy::replicate);
  check_graph(world, star_both_ways(100, true).graph, PartitionScheme::vertices, Strategy::get);
  check_graph(world, star_both_ways(64, false).graph, PartitionScheme::edges, Strategy::bulk);
  check_graph(world, random_csr<std::uint32_t>(5, 0, 3), PartitionScheme::vertices, Strategy::bulk);
});

TEST(Messages, AreMergedAsASlowVersionMergesThem) {
  for (const int ranks : {1, 2, 3, 5}) {
    const Outcome outcome = run_job({.program = "pushes", .ranks = ranks});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

// Ranks of several hosts share no memory.
const RankProgram between("pushes between hosts", [](World& world) {
  check_graph(world, random_csr<std::uint32_t>(40, 200, 6), PartitionScheme::hash, Strategy::bulk);
});

TEST(Messages, TravelBetweenHosts) { run_on_hosts("pushes between hosts", 3); }

const RankProgram late("pushes with delays", [](World& world) {
  const Csr32 graph = random_csr<std::uint32_t>(90, 500, 4);
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    switch_delays(10 * seed + static_cast<std::uint64_t>(world.rank()),
                  std::chrono::microseconds(500));
    check_graph(world, graph, PartitionScheme::hash, Strategy::bulk);
  }
});

TEST(Messages, NeedNoLuckInTime) {
  const Outcome outcome = run_job({.program = "pushes with delays", .ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

const RankProgram refused("refused pushes", [](World& world) {
  const Csr32 graph = star_both_ways(40, false).graph;  // all rows read vertex 0
  const Partition partition = make_partition(PartitionScheme::edges, graph, world.size());
  check_refusals<OnCpu>(world, *exchange_of(world, graph, partition), partition, true);
});

TEST(Messages, AreRefusedByAllRanksOrNone) {
  const Outcome outcome = run_job({.program = "refused pushes", .ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
  run_on_hosts("refused pushes", 3);
}

const RankProgram endless("endless pushes", [](World& world) {
  const Csr32 graph = random_csr<std::uint32_t>(60, 400, 5);
  const Partition partition = make_partition(PartitionScheme::edges, graph, world.size());
  const auto exchange = exchange_of(world, graph, partition);
  const auto messages = exchange->make_messages(Direction::along);
  const std::uint64_t slots = exchange->vertices(Direction::along).size();
  std::vector<std::uint64_t> values(slots);
  std::vector<std::uint32_t> marks(mark_words(slots));
  for (std::uint64_t round = 0;; ++round) {
    messages->push(std::span(values), marks, Merge::add, round);
    if (round == 100) say_ready(world);
  }
});

class LostInPush : public testing::TestWithParam<int> {};

TEST_P(LostInPush, IsAnErrorOnAllOtherRanks) {
  Job job({"endless pushes", 3});
  job.await_ready(3);
  const pid_t lost = job.rank(1);
  ASSERT_EQ(kill(lost, GetParam()), 0);
  const Outcome outcome = job.wait();
  kill(lost, SIGKILL);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, testing::Each(testing::ContainsRegex(
                                  "^plait: rank [02]: rank 1 (was killed|has not answered)")));
}

INSTANTIATE_TEST_SUITE_P(All, LostInPush, testing::Values(SIGKILL, SIGSTOP));

}  // namespace
}  // namespace plait::test
