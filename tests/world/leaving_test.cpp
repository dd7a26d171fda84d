// Ranks that join, fail or leave: a rank that fails tells why, and ranks that still wait for one
// that has left end with a line that names it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "plait/base/error.h"
#include "plait/symmetric/heap.h"
#include "plait/world/phase.h"
#include "plait/world/rendezvous.h"
#include "tests/support/error_of.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

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

// Rank 1 cannot end the others' waits, and goes on.
const RankProgram declares_failure("declares a failure", [](World& world) {
  const Phase phase("aggregate");
  world.barrier();
  if (world.rank() == 1) {
    world.declare_failed("in a test");
    while (error_of([&] { world.check_alive(); }).empty()) std::this_thread::sleep_for(1ms);
    expect(!error_of([&] { world.barrier(); }).empty(), "a rank that has failed goes on");
    throw Error("the failure itself");
  }
  for (;;) std::this_thread::sleep_for(1s);  // as in a library's wait
});

TEST(FailingRank, EndsWaitsThatNothingElseEnds) {
  const auto start = std::chrono::steady_clock::now();
  const auto outcome =
      run_job({.program = "declares a failure", .ranks = 3, .timeout_ms = kTimeoutMs});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_LT(seconds_since(start), 4 * kMostSeconds);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("the failure itself"));
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
  testing::internal::CaptureStderr();  // before the limit it says for whom it waits
  EXPECT_EQ(error_of([&] { World::join(config); }),
            "rank 0: of 3 ranks, these have not joined within 0.5 s: 1, 2");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "plait: rank 0 waits for ranks that have not joined yet: 1, 2\n");
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
