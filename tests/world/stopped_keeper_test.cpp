// Rank 0 keeps the store, as under mpirun, and is stopped: no other rank waits for an answer that
// does not come, whether it works, fails or ends.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "plait/base/error.h"
#include "plait/world/phase.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

std::atomic<bool> told{false};

// Rank 0 keeps the store. The others do their part when SIGUSR1 tells them.
template <class Act>
void when_told(World& world, Act act) {
  ::signal(SIGUSR1, [](int) { told = true; });
  const Phase epoch("epoch 17");
  const Phase phase("aggregate");
  world.barrier();
  std::this_thread::sleep_for(world.timeout() / 8);
  say_ready(world);
  while (!told) std::this_thread::sleep_for(5ms);
  act();
}
const RankProgram fails_when_told("fails when told", [](World& world) {
  when_told(world, [] { throw Error("this rank has failed"); });
});
const RankProgram ends_when_told("ends when told", [](World& world) { when_told(world, [] {}); });

// Ranks 1 and 2 of a run whose rank 0 was stopped while it kept the store. Rank 1 is told to act
// before its watch has found that out.
std::vector<Outcome> without_an_answer(const char* program) {
  const int port = free_port();
  std::vector<Process> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back(rank_environment(program, rank, 3, port, 2000));
  for (std::size_t rank = 0; rank < 3; ++rank) ranks[rank].await(fmt::format("ready {}", rank));
  ::kill(ranks[0].id(), SIGSTOP);
  std::this_thread::sleep_for(200ms);
  const auto start = steady_clock::now();
  ::kill(ranks[1].id(), SIGUSR1);
  std::vector<Outcome> outcomes;
  for (const std::size_t rank : {1u, 2u}) outcomes.push_back(ranks[rank].wait());
  EXPECT_LT(steady_clock::now() - start, 5s);
  return outcomes;
}

std::string silent_keeper(int rank) {
  return fmt::format(
      "^plait: rank {}: rank 0, which keeps the store at [0-9.:]+, has not answered "
      "for [0-9.]+ s while in 'epoch 17: aggregate'$",
      rank);
}

TEST(StoppedKeeperOfTheStore, HoldsNoRankThatFails) {
  const auto outcomes = without_an_answer("fails when told");
  EXPECT_EQ(outcomes[0].code, 1);
  EXPECT_THAT(outcomes[0].errors, testing::ElementsAre("plait: rank 1: this rank has failed"));
  EXPECT_EQ(outcomes[1].code, 1);
  EXPECT_THAT(outcomes[1].errors, testing::ElementsAre(testing::ContainsRegex(silent_keeper(2))));
}

TEST(StoppedKeeperOfTheStore, HoldsNoRankThatEnds) {
  const auto outcomes = without_an_answer("ends when told");
  for (const int rank : {1, 2}) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank) - 1];
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.errors, testing::ElementsAre(testing::ContainsRegex(silent_keeper(rank))));
  }
}

}  // namespace
}  // namespace plait::test
