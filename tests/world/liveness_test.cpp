// Ranks that die or stop: every other rank ends soon, and its one line names the lost rank and that
// rank's work.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "plait/symmetric/heap.h"
#include "plait/world/phase.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// --- programs of ranks: work for ever, in a named phase ---

template <class Step>
void forever(World& world, Step step) {
  const Phase epoch("epoch 17");
  const Phase phase("aggregate");
  for (int i = 0; i < 20; ++i) step();
  std::this_thread::sleep_for(world.timeout() / 8);  // one heartbeat at least
  say_ready(world);
  for (;;) step();
}

const RankProgram reduces("reduces", [](World& world) {
  std::vector<float> values(1000);
  forever(world, [&] { world.all_reduce_sum(std::span(values)); });
});
const RankProgram heap_barriers("heap barriers", [](World& world) {
  const auto heap = SymmetricHeap::create(world, 1 << 20);
  forever(world, [&] { heap->barrier(); });
});
const RankProgram computes("computes", [](World& world) {
  forever(world, [&] { std::this_thread::sleep_for(10ms); });
});

std::string lost(int rank, const std::string& reason) {
  return fmt::format("plait: rank {}: rank {} while in 'epoch 17: aggregate'", rank, reason);
}

// --- a rank that is killed ---

class Killed : public testing::TestWithParam<const char*> {};

TEST_P(Killed, IsNamedByAllOthers) {
  Job job({GetParam(), 3});
  job.await_ready(3);
  const auto start = steady_clock::now();
  ::kill(job.rank(2), SIGKILL);
  const auto outcome = job.wait();
  EXPECT_LT(seconds_since(start), kMostSeconds);
  EXPECT_EQ(outcome.code, 1);
  const std::string reason = "2 was killed by signal 9 (Killed)";
  EXPECT_THAT(outcome.errors, UnorderedElementsAre(lost(0, reason), lost(1, reason)));
}

INSTANTIATE_TEST_SUITE_P(During, Killed, testing::Values("reduces", "heap barriers", "computes"));

// The peer of a socket, or of a pipe, may be gone when a rank writes to it.
const RankProgram writes_to_nobody("writes to nobody", [](World& world) {
  int ends[2];
  expect(::pipe(ends) == 0, "a pipe");
  ::close(ends[0]);
  expect(::write(ends[1], "x", 1) == -1 && errno == EPIPE, "somebody reads");
  ::close(ends[1]);
  world.barrier();
});

TEST(KilledRank, EndsNobodyWhoWritesToIt) {
  const Outcome outcome = run_job({.program = "writes to nobody", .ranks = 2});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

const RankProgram joined_just_now("joined just now", [](World& world) {
  std::this_thread::sleep_for(700ms);  // the next heartbeat is due after a second
  say_ready(world);
  for (;;) world.barrier();
});

TEST(KilledRank, IsNotSaidToJoinOnceItHasJoined) {
  Job job({"joined just now", 2, kPatient});
  job.await_ready(2);
  ::kill(job.rank(1), SIGKILL);
  const auto outcome = job.wait();
  EXPECT_THAT(outcome.errors, ElementsAre("plait: rank 0: rank 1 was killed by signal 9 (Killed)"));
}

TEST(KilledRank, MayBeTheFirst) {
  Job job({"reduces", 2});
  job.await_ready(2);
  ::kill(job.rank(0), SIGABRT);
  const auto outcome = job.wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, ElementsAre(lost(1, "0 was killed by signal 6 (Aborted)")));
}

TEST(KilledRank, IsToldByTheLauncherIfNoOtherRankCan) {
  Job job({"computes", 1});
  ::kill(job.rank(0), SIGKILL);
  const auto outcome = job.wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, ElementsAre("plait: rank 0 was killed by signal 9 (Killed)"));
}

// There is no launcher, and a rank keeps the store: the heartbeat, or the store, tells.
TEST(KilledRank, WithoutALauncher) {
  for (const int victim : {0, 1}) {
    const int port = free_port();
    std::vector<Process> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.emplace_back(rank_environment("reduces", rank, 3, port, 2000));
    for (int rank = 0; rank < 3; ++rank)
      ranks[static_cast<std::size_t>(rank)].await(fmt::format("ready {}", rank));
    ::kill(ranks[static_cast<std::size_t>(victim)].id(), SIGKILL);
    const auto start = steady_clock::now();
    for (int rank = 0; rank < 3; ++rank) {
      const auto outcome = ranks[static_cast<std::size_t>(rank)].wait();
      if (rank == victim) continue;
      EXPECT_EQ(outcome.code, 1);
      const auto place = fmt::format("127.0.0.1:{}", port);
      EXPECT_THAT(
          outcome.errors,
          ElementsAre(ContainsRegex(
              victim == 0 ? lost(rank, "0, which keeps the store at " + place +
                                           ", has broken the connection")
                          : fmt::format("^plait: rank {}: rank 1 has not answered for [0-9.]+ s "
                                        "while in 'epoch 17: aggregate'$",
                                        rank))));
    }
    EXPECT_LT(seconds_since(start), kMostSeconds);
  }
}

// --- ranks that call different things ---

const RankProgram calls_another("calls another", [](World& world) {
  const auto heap = SymmetricHeap::create(world, 8);
  std::vector<float> value(1);
  if (world.rank() == 1)
    world.all_reduce_sum(std::span(value));
  else
    heap->barrier();
});

TEST(DifferentOperations, EndAllRanksThatWouldWaitForEver) {
  const auto outcome = run_job({"calls another", 2});
  EXPECT_EQ(outcome.code, 1);
  const std::string rule = "; every rank must make the same calls in the same order";
  EXPECT_THAT(
      outcome.all_errors(),
      testing::AnyOf(HasSubstr("rank 0: rank 1 has called a reduction over ranks where rank 0 has "
                               "called an operation on a graph" +
                               rule),
                     HasSubstr("rank 1: rank 0 has called an operation on a graph where "
                               "rank 1 has called a reduction over ranks" +
                               rule)));
}

// --- a rank that stops ---

class Stopped : public testing::TestWithParam<JobOptions> {};

TEST_P(Stopped, IsLostWithinTheTimeout) {
  Job job(GetParam());
  const double timeout = GetParam().timeout_ms / 1000.0;
  job.await_ready(3);
  const auto start = steady_clock::now();
  ::kill(job.rank(1), SIGSTOP);
  job.await_errors(2);
  EXPECT_GT(seconds_since(start), 0.5 * timeout);
  // A busy machine takes a moment to run the ranks at all, which counts in a short timeout.
  EXPECT_LT(seconds_since(start), std::max(timeout, 3.5));
  // The search for leaks at the end of a process takes seconds there.
  const auto outcome = job.wait();
  EXPECT_LT(seconds_since(start), timeout + kMostSeconds);
  EXPECT_EQ(outcome.code, 1);
  const auto line = [](int rank) {
    return ContainsRegex(fmt::format(
        "^plait: rank {}: rank 1 has not answered for [0-9.]+ s while in 'epoch 17: aggregate'$",
        rank));
  };
  EXPECT_THAT(outcome.errors, UnorderedElementsAre(line(0), line(2)));
  EXPECT_FALSE(process_runs(job.rank(1)));
}

INSTANTIATE_TEST_SUITE_P(During, Stopped,
                         testing::Values(JobOptions{"reduces", 3, 5000},
                                         JobOptions{"heap barriers", 3, 2000}));

TEST(StoppedJob, LosesNobodyWhenItContinues) {
  Job job({"heap barriers", 2, 800});
  std::vector<pid_t> all{job.id()};
  for (int rank = 0; rank < 2; ++rank) all.push_back(job.rank(rank));
  for (const pid_t process : all) ::kill(process, SIGSTOP);
  std::this_thread::sleep_for(1200ms);
  for (const pid_t process : all) ::kill(process, SIGCONT);
  std::this_thread::sleep_for(1s);
  for (const pid_t process : all) EXPECT_TRUE(process_runs(process));
  ::kill(job.id(), SIGTERM);
  const auto outcome = job.wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.all_errors(), "plait: interrupted\n");  // of the launcher; no rank is lost
}

const RankProgram slow("slow", [](World& world) {
  world.barrier();
  if (world.rank() == 1) std::this_thread::sleep_for(world.timeout() * 5 / 2);
  world.barrier();
});

TEST(BusyRank, IsNotLost) {
  const auto outcome = run_job({"slow", 2, 800});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.all_errors(), "");
}

}  // namespace
}  // namespace plait::test
