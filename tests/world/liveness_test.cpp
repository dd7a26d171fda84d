// Ranks that die, stop, fail or leave: every other rank ends soon, and its one line names the lost
// rank and that rank's work.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "plait/base/error.h"
#include "plait/symmetric/heap.h"
#include "plait/world/launch.h"
#include "plait/world/phase.h"
#include "plait/world/rendezvous.h"
#include "tests/support/error_of.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

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

// The time in which a killed rank ends the others, on a busy machine and under sanitizers too.
constexpr double kMostSeconds = 5;

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
      testing::AnyOf(HasSubstr("rank 0: rank 1 has called a sum over ranks where rank 0 has "
                               "called an operation on a graph" +
                               rule),
                     HasSubstr("rank 1: rank 0 has called an operation on a graph where "
                               "rank 1 has called a sum over ranks" +
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
  const auto outcome = job.wait();
  EXPECT_GT(seconds_since(start), 0.5 * timeout);
  // The end of the processes themselves takes a moment, which counts in a short timeout.
  EXPECT_LT(seconds_since(start), std::max(timeout, 3.5));
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

// --- the launcher ---

// Returns names in /dev/shm that are ours, or a rank's.
std::vector<std::string> shared_names(const std::vector<pid_t>& ranks) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const auto name = entry.path().filename().string();
    const auto holds = [&](const std::string& text) { return name.find(text) != name.npos; };
    if (holds("plait") ||
        std::ranges::any_of(ranks, [&](pid_t rank) { return holds(std::to_string(rank)); }))
      found.push_back(name);
  }
  return found;
}

TEST(Launcher, TakesAllRanksWithItWhenKilled) {
  Job job({"heap barriers", 2});
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(job.rank(rank));
  EXPECT_THAT(shared_names(ranks), IsEmpty());
  ::kill(job.id(), SIGKILL);
  EXPECT_EQ(job.wait().code, -SIGKILL);
  const auto end = steady_clock::now() + 2s;
  while (std::ranges::any_of(ranks, process_runs) && steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
  for (const pid_t rank : ranks) EXPECT_FALSE(process_runs(rank));
  EXPECT_THAT(shared_names(ranks), IsEmpty());
}

TEST(Launcher, PassesInterruptsOnAndTellsWhereRanksCannot) {
  Job job({"reduces", 2});
  job.await_ready(2);
  ::kill(job.id(), SIGINT);
  const auto outcome = job.wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.all_errors(), "plait: interrupted\n");  // ranks die of the signal in silence
}

const PlainProgram deaf("deaf", [] {
  ::signal(SIGTERM, SIG_IGN);
  say(fmt::format("ready {} {}", world_from_environment()->rank, ::getpid()));
  if (world_from_environment()->rank == 0) return 7;
  for (;;) std::this_thread::sleep_for(1s);
});

TEST(Launcher, KillsWhatDoesNotEndAndKeepsTheFirstCode) {
  Job job({"deaf", 2, 500});
  const pid_t other = job.rank(1);
  const auto start = steady_clock::now();
  EXPECT_EQ(job.wait().code, 7);
  EXPECT_LT(seconds_since(start), kMostSeconds);
  EXPECT_FALSE(process_runs(other));
}

std::atomic<bool> asked{false};

// Finishes its work before it ends, which takes longer than the launcher's deadlines.
const PlainProgram takes_its_time("takes its time", [] {
  for (const int number : {SIGINT, SIGTERM}) ::signal(number, [](int) { asked = true; });
  const int rank = world_from_environment()->rank;
  say(fmt::format("ready {} {}", rank, ::getpid()));
  while (!asked) std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(2s);
  say(fmt::format("saved {}", rank));
  return 130;
});
const PlainProgram deaf_to_all("deaf to all", [] {
  for (const int number : {SIGINT, SIGTERM}) ::signal(number, SIG_IGN);
  say(fmt::format("ready {} {}", world_from_environment()->rank, ::getpid()));
  for (;;) std::this_thread::sleep_for(1s);
  return 0;
});

TEST(Launcher, WaitsForInterruptedRanksHoweverLong) {
  Job job({"takes its time", 2, 200});
  job.await_ready(2);
  ::kill(job.id(), SIGTERM);
  ::kill(job.id(), SIGINT);  // so soon after, the same wish
  for (int rank = 0; rank < 2; ++rank) job.await(fmt::format("saved {}", rank));
  const auto outcome = job.wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.all_errors(), "");
}

TEST(Launcher, ContinuesStoppedRanksThatAreToEnd) {
  Job job({"takes its time", 2, 200});
  job.await_ready(2);
  for (int rank = 0; rank < 2; ++rank) ::kill(job.rank(rank), SIGSTOP);
  ::kill(job.id(), SIGTERM);
  const auto outcome = job.wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.all_errors(), "");
}

TEST(Launcher, EndsRanksAtTheSecondSignal) {
  Job job({"deaf to all", 2, 200});
  job.await_ready(2);
  ::kill(job.id(), SIGINT);
  std::this_thread::sleep_for(2s);
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(process_runs(job.rank(rank)));
  ::kill(job.id(), SIGINT);
  EXPECT_EQ(job.wait().code, 130);
  for (int rank = 0; rank < 2; ++rank) EXPECT_FALSE(process_runs(job.rank(rank)));
}

TEST(Launcher, BoundsTheEndOfInterruptedRanksWhenOneIsLost) {
  Job job({"deaf to all", 2, 200});
  job.await_ready(2);
  ::kill(job.id(), SIGTERM);
  std::this_thread::sleep_for(100ms);
  ::kill(job.rank(1), SIGKILL);
  EXPECT_EQ(job.wait().code, 130);
  EXPECT_FALSE(process_runs(job.rank(0)));
}

TEST(Launcher, RefusesNonsense) {
  LaunchOptions options;
  options.ranks = 0;
  EXPECT_THROW(launch(options, {}), UsageError);
  options = {.ranks = 2, .timeout = 1ms};
  EXPECT_THROW(launch(options, {}), UsageError);
}

// --- ranks that fail or leave ---

const RankProgram one_fails("one fails", [](World& world) {
  const Phase phase("reading");
  world.barrier();
  if (world.rank() == 1) throw InputError("x.mtx", "line 7", "row 9 is outside 1..5", "mend it");
  world.barrier();
});

// One error gives one line: the others end with it, and leave the report to the rank that knows.
TEST(FailingRank, SaysWhyAndTheOthersEndInSilence) {
  const auto outcome = run_job({"one fails", 3});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors,
              ElementsAre("plait: rank 1: x.mtx: line 7: row 9 is outside 1..5; mend it"));
}

const RankProgram all_fail("all fail", [](World& world) {
  std::this_thread::sleep_for(30ms * world.rank());
  // Each rank sees another part of the memory free.
  throw DoesNotFitError(fmt::format("it needs 7 GiB, but only {} GiB is free", 3 + world.rank()));
});
const PlainProgram all_fail_before("all fail before joining",
                                   []() -> int { throw UsageError("there is no such option"); });

TEST(FailingRank, IsSilentIfAllFailAlike) {
  auto outcome = run_job({"all fail", 3, kPatient});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.errors, ElementsAre("plait: it needs 7 GiB, but only 3 GiB is free"));
  outcome = run_job({"all fail before joining", 3, kPatient});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, ElementsAre("plait: there is no such option"));
}

const RankProgram leaves_early("leaves early", [](World& world) {
  world.barrier();
  if (world.rank() == 1) return;
  const Phase phase("epoch 2");
  world.barrier();
});
const RankProgram leaves_heap_early("leaves heap early", [](World& world) {
  const auto heap = SymmetricHeap::create(world, 100);
  if (world.rank() == 1) return;
  const Phase phase("epoch 2");
  heap->barrier();
});
const RankProgram quits_early("quits early", [](World& world) {
  world.barrier();
  if (world.rank() == 1) ::_exit(0);
  const Phase phase("epoch 2");
  world.barrier();
});

TEST(LeavingRank, IsMissedByThoseThatWaitForIt) {
  for (const char* program : {"leaves early", "leaves heap early"}) {
    const auto outcome = run_job({program, 2});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.errors.size(), 2u);
    EXPECT_THAT(outcome.all_errors(),
                ContainsRegex("rank 1 has ended, but rank 0 still waits for it while in "
                              "'epoch 2'"));
  }
  const auto outcome = run_job({"quits early", 2});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.errors.size(), 1u);
  EXPECT_THAT(outcome.all_errors(), ContainsRegex("rank 0: rank 1 ended with exit code 0 before"));
}

// Leaving is no loss while the others still compute, nor is exit() without destroying the World.
const RankProgram leaves_in_turn("leaves in turn", [](World& world) {
  std::vector<double> one{1};
  world.all_reduce_sum(std::span(one));
  std::this_thread::sleep_for(800ms * world.rank());
});
const RankProgram exits("exits", [](World& world) {
  world.barrier();
  std::exit(0);
});
const RankProgram exits_with_failure("exits with failure", [](World& world) {
  world.barrier();
  if (world.rank() == 0) std::exit(3);
  world.barrier();
});

TEST(LeavingRank, IsNotMissedByOthers) {
  for (const char* program : {"leaves in turn", "exits"}) {
    const auto outcome = run_job({program, 2, 500});
    EXPECT_EQ(outcome.code, 0) << program;
    EXPECT_EQ(outcome.all_errors(), "");
  }
  const auto outcome = run_job({"exits with failure", 2});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.errors, ElementsAre("plait: rank 1: rank 0 failed with exit code 3"));
}

// --- joining ---

TEST(Joining, TakesAllRanksOrSaysWhichAreMissing) {
  WorldConfig config;
  config.size = 3;
  config.master_port = free_port();
  config.join_timeout = 500ms;
  try {
    World::join(config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 0: of 3 ranks, these have not joined within 0.5 s: 1, 2");
  }
  config.rank = 1;
  EXPECT_THROW(World::join(config), Error);  // nobody keeps a store there
  config.rank = 3;
  EXPECT_THROW(World::join(config), UsageError);
}

// A stranger speaks the store's words with another secret, as a rank does that was given a wrong
// one. Anybody on the host could, so it ends nobody's run: rank 0 waits for its ranks, and tells.
TEST(Joining, TellsHowManyHadAnotherSecret) {
  WorldConfig config;
  config.size = 2;
  config.master_port = free_port();
  config.join_timeout = 1s;
  config.secret = {1, 2, 3};
  RendezvousAddress other = rendezvous_address(config);
  other.secret = {4, 5, 6};
  std::string text;
  std::thread first([&] { text = error_of([&] { World::join(config); }); });
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(error_of([&] { Rendezvous::connect(other, 900ms); }), HasSubstr("another secret"));
  first.join();
  EXPECT_EQ(text,
            "rank 0: of 2 ranks, these have not joined within 1 s: 1; connections with another "
            "secret (PLAIT_SECRET) were refused 2 times");
}

TEST(PhaseNames, AreJoinedAndKeptByExceptions) {
  EXPECT_EQ(Phase::current(), "");
  {
    const Phase outer("epoch 1");
    EXPECT_EQ(Phase::current(), "epoch 1");
    {
      const Phase inner("aggregate");
      EXPECT_EQ(Phase::current(), "epoch 1: aggregate");
    }
    EXPECT_EQ(Phase::current(), "epoch 1");
    EXPECT_EQ(Phase::at_failure(), "epoch 1");
  }
  try {
    const Phase outer("epoch 2");
    const Phase inner("combine");
    throw Error("");
  } catch (const Error&) {
    EXPECT_EQ(Phase::current(), "");
    EXPECT_EQ(Phase::at_failure(), "epoch 2: combine");
  }
  const Phase next("epoch 3");
  EXPECT_EQ(Phase::at_failure(), "epoch 3");
}

}  // namespace
}  // namespace plait::test
