// Waits between GPUs: they last as long as the ranks are alive, however long a host pauses, and
// once one has failed there are no results any more. Ranks share GPUs where there are fewer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <thread>

#include "plait/base/error.h"
#include "plait/world/phase.h"
#include "tests/gpu/endless_kernel.h"
#include "tests/gpu/part.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::HasSubstr;

// The host of rank 0 pauses between two steps while the others wait on their GPUs.
const RankProgram pauses("gpu pauses", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  Part part(world, strategy_under_test());
  for (int step = 0; step < 6; ++step) {
    if (step == 3 && world.rank() == 0)
      std::this_thread::sleep_for(std::chrono::seconds(std::stoi(std::getenv("TEST_PAUSE"))));
    part.expect_right(fmt::format("step {}", step));
  }
});

TEST(GpuWaits, LastAsLongAsAHostPauses) {
  std::vector<Job> jobs;
  for (const std::string& strategy : strategies_by_signals())
    jobs.emplace_back(
        JobOptions{.program = "gpu pauses",
                   .ranks = std::min(gpu_count(), 4) > 1 ? std::min(gpu_count(), 4) : 2,
                   .timeout_ms = 5000,
                   .environment = {{"TEST_STRATEGY", strategy},
                                   {"TEST_PAUSE", "75"},
                                   // This limit is shorter than the pause, which is no hang.
                                   {"PLAIT_GPU_TIMEOUT_MS", "20000"}}});
  for (Job& job : jobs) {
    const Outcome outcome = job.wait(150s);
    EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
  }
}

// Enqueues a kernel that never ends, before a step of rank 1.
const RankProgram endless("gpu endless", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  Part part(world, strategy_under_test());
  part.expect_right("before");
  const Phase phase("step");
  say_ready(world);
  if (world.rank() == 1) launch_endless_kernel(nullptr);
  part.enqueue();
  part.result();
  part.aggregator().check();
  say("got a result");
});

TEST(GpuWaits, AKernelThatNeverEndsLosesItsRank) {
  for (const std::string& strategy : strategies_by_signals()) {
    Job job({.program = "gpu endless",
             .ranks = std::max(2, std::min(gpu_count(), 4)),
             .timeout_ms = 5000,
             .environment = {{"TEST_STRATEGY", strategy}, {"PLAIT_GPU_TIMEOUT_MS", "3000"}}});
    job.rank(1);
    const auto start = steady_clock::now();
    const Outcome outcome = job.wait(60s);
    EXPECT_EQ(outcome.code, 1) << strategy;
    EXPECT_LT(steady_clock::now() - start, 10s) << strategy;
    EXPECT_THAT(outcome.all_errors(),
                HasSubstr("plait: rank 0: rank 1 has a GPU that has not moved on for"))
        << strategy;
  }
}

bool all_nan(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float v) { return std::isnan(v); });
}

// Rank 1 dies while rank 0 has two operations under way, of which it reads both results.
const RankProgram nan_results("gpu results after a loss", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  Part part(world, strategy_under_test());
  part.expect_right("before");
  // Later work takes no memory, for which the host would wait for the GPU.
  const bool maximum = strategy_under_test() == Strategy::pipelined;
  if (maximum) part.enqueue_max();
  DeviceArray<float> first(part.y().size());
  part.result();
  say_ready(world);
  if (world.rank() == 1) std::this_thread::sleep_for(60s);
  maximum ? part.enqueue_max() : part.enqueue();
  check_cuda(cudaMemcpyAsync(first.data(), part.y().data(), first.size() * sizeof(float),
                             cudaMemcpyDeviceToDevice, nullptr),
             "a result");
  part.enqueue();
  try {
    for (;; std::this_thread::sleep_for(1ms)) world.check_alive();
  } catch (const LostRankError&) {
    // From here on, the watch over ranks leaves this thread some time.
  }
  const bool nan = all_nan(part.result()) && all_nan(first.to_host());
  std::string text;
  bool refused = true;
  const std::vector<std::function<void()>> operations{
      [&] { part.aggregator().check(); }, [&] { part.enqueue(); },
      [&] { part.aggregator().cost(); },
      [&] { part.aggregator().all_reduce_sum(part.y().data(), 1); }, [&] { world.barrier(); }};
  for (const auto& operation : operations) try {
      operation();
      refused = false;
    } catch (const LostRankError& error) {
      if (text.empty()) text = error.what();
      refused &= text == error.what();
    }
  say(fmt::format("after: {}{}", nan ? "NaN" : "numbers", refused ? ", refused" : ", done"));
});

TEST(GpuWaits, NothingButNaNComesOfAFailedOne) {
  for (const char* strategy : {"pipelined", "partial", "get"}) {
    Job job({.program = "gpu results after a loss",
             .ranks = 2,
             .timeout_ms = 3000,
             .environment = {{"TEST_STRATEGY", strategy}}});
    job.await_ready(2);
    std::this_thread::sleep_for(300ms);
    kill(job.rank(1), SIGKILL);
    EXPECT_EQ(job.await("after: "), "NaN, refused") << strategy;
    EXPECT_EQ(job.wait().code, 1);
  }
}

// A rank that fails by an error of its own does not wait for others on its GPU, nor they for it.
const RankProgram fails("gpu rank fails", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  Part part(world, Strategy::pipelined);
  part.expect_right("before");
  if (world.rank() != 0) part.enqueue();  // waits for rank 0
  expect(world.rank() != 1, "enough of it");
  part.result();
  if (world.rank() == 0) std::this_thread::sleep_for(60s);
  part.aggregator().check();
});

TEST(GpuWaits, EndWithTheRankThatFails) {
  const auto start = steady_clock::now();
  const Outcome outcome = run_job({.program = "gpu rank fails", .ranks = 3, .timeout_ms = 5000});
  EXPECT_LT(steady_clock::now() - start, 15s);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("enough of it"));
}

}  // namespace
}  // namespace plait::test
