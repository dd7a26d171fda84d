// The launcher: how it ends its ranks, by signals and when it is killed itself.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "plait/base/error.h"
#include "plait/world/launch.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::IsEmpty;

// Returns names in /dev/shm that are ours, or a rank's. LLVM's OpenMP, which builds by Clang use,
// puts names of its own there as soon as a process asks for threads.
std::vector<std::string> shared_names(const std::vector<pid_t>& ranks) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const auto name = entry.path().filename().string();
    const auto holds = [&](const std::string& text) { return name.find(text) != name.npos; };
    if (name.starts_with("__KMP_REGISTERED_LIB_")) continue;
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
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, [](int) { asked = true; });
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

TEST(Launcher, TakesHangupsForOneWish) {
  Job job({"takes its time", 2, 200});
  job.await_ready(2);
  ::kill(job.id(), SIGHUP);
  std::this_thread::sleep_for(700ms);
  ::kill(job.id(), SIGHUP);   // a second wish would end the ranks before they are done
  ::kill(job.id(), SIGTERM);  // as when a session ends after its terminal
  for (int rank = 0; rank < 2; ++rank) job.await(fmt::format("saved {}", rank));
  EXPECT_EQ(job.wait().code, 130);
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
  EXPECT_THROW(launch(options), UsageError);
  options = {.ranks = 2, .timeout = 1ms};
  EXPECT_THROW(launch(options), UsageError);
}

}  // namespace
}  // namespace plait::test
