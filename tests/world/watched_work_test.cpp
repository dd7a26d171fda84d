// Work that World does not see, as that of a GPU: a rank is lost when its own stands still, waits
// end when a rank is lost, and nothing else ends them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "plait/base/error.h"
#include "plait/world/fail.h"
#include "plait/world/phase.h"
#include "plait/world/watched_wait.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::ContainsRegex;
using testing::UnorderedElementsAre;

constexpr double kHalfOfTheSleep = 60;  // instrumented processes begin slowly

class FakeWork final : public WatchedWork {
 public:
  explicit FakeWork(World& world) : world_(world) { world_.watch(*this); }
  ~FakeWork() { world_.unwatch(*this); }

  void end_waits() override { ended = true; }
  // While it waits, it moves with each look.
  Progress progress() override { return {under_way, waits ? ++moved : moved.load()}; }

  std::atomic<bool> ended{false}, under_way{false}, waits{false};
  std::atomic<std::uint64_t> moved{0};

 private:
  World& world_;
};

// The work of a rank whose results depend on a wait: it waits, and looks whether the wait has
// failed.
void wait_for_others(World& world, FakeWork& work) {
  while (!work.ended) std::this_thread::sleep_for(1ms);
  world.check_alive();
  throw Error("the wait has ended, but no rank is lost");
}

const RankProgram stands("work stands still", [](World& world) {
  FakeWork work(world);
  work.under_way = true;
  work.waits = world.rank() != 1;
  const Phase phase("step");
  wait_for_others(world, work);
});

TEST(WatchedWork, ThatStandsStillLosesItsRank) {
  const auto start = steady_clock::now();
  const Outcome outcome =
      run_job({"work stands still", 3, kTimeoutMs, {{"PLAIT_GPU_TIMEOUT_MS", "700"}}});
  EXPECT_GE(steady_clock::now() - start, 700ms);
  EXPECT_EQ(outcome.code, 1);
  const auto other = [](int rank) {
    return ContainsRegex(
        fmt::format("^plait: rank {}: rank 1 has a GPU that has not moved on for "
                    "[0-9.]+ s while in 'step'$",
                    rank));
  };
  EXPECT_THAT(outcome.errors,
              UnorderedElementsAre(other(0), other(2),
                                   ContainsRegex("^plait: rank 1: this rank was taken for lost: it "
                                                 "has a GPU that has not moved on")));
}

// The host of rank 1 waits for a GPU that never ends its work; the other rank waits for rank 1.
const RankProgram endless("a wait without end", [](World& world) {
  std::atomic<int> asked{0};
  watched_wait(world, [&] { return ++asked > 5; });
  say_ready(world);
  const Phase phase("step");
  if (world.rank() == 1) watched_wait(world, [] { return false; });
  world.barrier();
});

// The driver's own wait, which nothing ends.
const RankProgram blocked("a wait that nothing ends", [](World& world) {
  watch_while(world, [] {});
  const Phase phase("step");
  if (world.rank() == 1) watch_while(world, [] { std::this_thread::sleep_for(120s); });
  world.barrier();
});

class EndlessWait : public testing::TestWithParam<const char*> {};

TEST_P(EndlessWait, LosesItsRank) {
  const auto start = steady_clock::now();
  const Outcome outcome = run_job({GetParam(), 2, kTimeoutMs, {{"PLAIT_GPU_TIMEOUT_MS", "700"}}});
  EXPECT_LT(seconds_since(start), kHalfOfTheSleep);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors,
              UnorderedElementsAre(ContainsRegex("^plait: rank 0: rank 1 has a GPU that has not "
                                                 "moved on for [0-9.]+ s while in 'step'$"),
                                   ContainsRegex("^plait: rank 1: this rank was taken for lost: it "
                                                 "has a GPU that has not moved on")));
}

INSTANTIATE_TEST_SUITE_P(WatchedWait, EndlessWait,
                         testing::Values("a wait without end", "a wait that nothing ends"),
                         [](const auto& of) {
                           return std::string(of.index == 0 ? "asked" : "blocked");
                         });

// The GPU for which the host waits has other work, which waits for another rank.
const RankProgram beside("a wait beside work that moves", [](World& world) {
  FakeWork work(world);
  work.under_way = work.waits = true;
  const auto start = steady_clock::now();
  if (world.rank() == 1) watched_wait(world, [&] { return steady_clock::now() - start > 1500ms; });
  world.barrier();
});

TEST(WatchedWait, MayLastWhileOtherWorkMoves) {
  const Outcome outcome =
      run_job({"a wait beside work that moves", 2, 2000, {{"PLAIT_GPU_TIMEOUT_MS", "400"}}});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.all_errors(), "");
}

// A process that has reported its loss, and then waits for its GPU without end, ends all the same.
const RankProgram stays("a wait after the report", [](World& world) {
  try {
    if (world.rank() == 1) watched_wait(world, [] { return false; });
    world.barrier();
  } catch (const LostRankError& error) {
    fail_world(error.what());
    if (world.rank() == 1) std::this_thread::sleep_for(120s);
    throw;
  }
});

TEST(WatchedWait, DoesNotHoldTheProcessAfterTheReport) {
  const int port = free_port();
  std::vector<Process> ranks;  // of no launcher, which would end them
  for (int rank = 0; rank < 2; ++rank) {
    Environment environment = rank_environment("a wait after the report", rank, 2, port, 2000);
    environment["PLAIT_GPU_TIMEOUT_MS"] = "300";
    ranks.emplace_back(environment);
  }
  const auto start = steady_clock::now();
  for (Process& rank : ranks) EXPECT_EQ(rank.wait().code, 1);
  EXPECT_LT(seconds_since(start), kHalfOfTheSleep);
}

// Tells that the wait has ended, and not the process alone.
const RankProgram tells("a wait that a loss ends", [](World& world) {
  say_ready(world);
  try {
    watched_wait(world, [] { return false; });
  } catch (const LostRankError&) {
    fmt::print(stderr, "the wait of rank {} has ended\n", world.rank());
    throw;
  }
});

TEST(WatchedWait, EndsWhenARankIsLost) {
  Job job({"a wait that a loss ends", 2});
  job.await_ready(2);
  ::kill(job.rank(0), SIGKILL);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.all_errors(), testing::HasSubstr("rank 0 was killed by signal 9"));
  EXPECT_THAT(outcome.all_errors(), testing::HasSubstr("the wait of rank 1 has ended"));
}

// Waits of any length, and ranks that have nothing to do, are no losses.
const RankProgram waits("work waits", [](World& world) {
  FakeWork work(world);
  work.under_way = work.waits = world.rank() == 0;
  std::this_thread::sleep_for(1500ms);
  expect(!work.ended, "the waits were ended");
  world.barrier();
});

TEST(WatchedWork, MayWaitForLong) {
  const Outcome outcome = run_job({"work waits", 2, 2000, {{"PLAIT_GPU_TIMEOUT_MS", "400"}}});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.all_errors(), "");
}

// The watch does not count time in which it did not run.
const RankProgram suspended("work of a suspended job", [](World& world) {
  FakeWork work(world);
  work.under_way = true;
  say_ready(world);
  std::this_thread::sleep_for(700ms);
  work.waits = true;
  std::this_thread::sleep_for(500ms);
  world.barrier();
});

TEST(WatchedWork, OfASuspendedJobIsNotJudged) {
  Job job({"work of a suspended job", 2, 2000, {{"PLAIT_GPU_TIMEOUT_MS", "2500"}}});
  std::vector<pid_t> all{job.id()};
  for (int rank = 0; rank < 2; ++rank) all.push_back(job.rank(rank));
  for (const pid_t process : all) ::kill(process, SIGSTOP);
  std::this_thread::sleep_for(3500ms);
  for (const pid_t process : all) ::kill(process, SIGCONT);
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.all_errors(), "");
}

const RankProgram waits_for_lost("work waits for a lost rank", [](World& world) {
  FakeWork work(world);
  work.under_way = work.waits = true;
  const Phase phase("step");
  std::this_thread::sleep_for(world.timeout() / 8);  // one heartbeat at least
  say_ready(world);
  wait_for_others(world, work);
});

TEST(WatchedWork, EndsItsWaitsWhenARankIsLost) {
  Job job({"work waits for a lost rank", 3});
  job.await_ready(3);
  const auto start = steady_clock::now();
  ::kill(job.rank(2), SIGKILL);
  const Outcome outcome = job.wait();
  EXPECT_LT(seconds_since(start), kMostSeconds);
  EXPECT_EQ(outcome.code, 1);
  const auto line = [](int rank) {
    return fmt::format("plait: rank {}: rank 2 was killed by signal 9 (Killed) while in 'step'",
                       rank);
  };
  EXPECT_THAT(outcome.errors, UnorderedElementsAre(line(0), line(1)));
}

// All work after a lost rank is refused with the same words, and work that begins only then waits
// for nobody.
const RankProgram refuses("refuses all after a loss", [](World& world) {
  std::string text;
  const auto refused = [&](const std::function<void()>& operation) {
    try {
      operation();
    } catch (const LostRankError& error) {
      if (text.empty()) text = error.what();
      return text == error.what();
    }
    return false;
  };
  say_ready(world);
  while (!refused([&] { world.check_alive(); })) std::this_thread::sleep_for(1ms);
  float value = 1;
  bool all = refused([&] { world.barrier(); });
  all &= refused([&] { world.all_reduce_sum(std::span(&value, 1)); });
  all &= refused([&] { world.explain("a wait has failed"); });
  FakeWork late(world);
  say(all && late.ended ? "all refused" : "something was done");
});

TEST(LostRank, RefusesEverythingWithTheSameWords) {
  Job job({"refuses all after a loss", 2});
  job.await_ready(2);
  ::kill(job.rank(1), SIGKILL);
  EXPECT_EQ(job.await("all "), "refused");
  EXPECT_EQ(job.wait().code, 1);
}

}  // namespace
}  // namespace plait::test
