// Aggregation over NVSHMEM, and ranks that are lost or fail while others wait for them on their
// GPUs, with either transport.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/library.h"
#include "tests/gpu/aggregate_checks.h"

namespace plait::test {
namespace {

// Slots grow between steps, to some GiB: the heap's memory is freed and taken again.
void check_growth(World& world, const Case& c, DeviceTransport transport) {
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  Placed placed(world, c, partition, {.route = {.transport = transport}, .max_width = 1});
  for (const std::uint64_t width : {c.width, std::uint64_t{1} << 16, std::uint64_t{1} << 22}) {
    placed.reserve(width);
    placed.expect_right({.pre = true}, 2e-6, fmt::format("with room for width {}", width));
  }
}

const RankProgram kNvshmemAggregate("gpu aggregate by nvshmem", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  constexpr auto kTransport = DeviceTransport::nvshmem;
  for (unsigned seed = 0; seed < 2; ++seed) {
    check_case(world, Case(seed), {Strategy::pipelined, Strategy::get}, kTransport);
    check_passes(world, Case(seed), Strategy::pipelined, kTransport);
    check_growth(world, Case(seed), kTransport);
  }
  check_case(world, Case(1), {Strategy::bulk}, kTransport);
  check_reduce(world, {.route = {.transport = kTransport}, .max_width = 1});
});

TEST(GpuAggregate, NvshmemEqualsThreeLoops) {
  if (open_library(kNvshmem) == nullptr) GTEST_SKIP() << kNvshmem.name << " is not there";
  for (const int ranks : {1, 2, 3, 4}) {
    if (ranks > gpu_count()) continue;  // refused, see below
    const Outcome outcome =
        run_job({.program = "gpu aggregate by nvshmem", .ranks = ranks, .timeout_ms = kPatient});
    EXPECT_EQ(outcome.code, 0) << ranks << " ranks: " << outcome.all_errors();
  }
}

TEST(GpuAggregate, NvshmemRefusesRanksThatShareAGpu) {
  const Outcome outcome = run_job(
      {.program = "gpu aggregate by nvshmem", .ranks = gpu_count() + 1, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 2) << outcome.all_errors();
  EXPECT_NE(outcome.all_errors().find("2 ranks share the GPU of rank 0"), std::string::npos)
      << outcome.all_errors();
}

// The rank that the others wait for on their GPUs is killed.
void lose_rank_1(World& world, DeviceTransport transport) {
  use_gpu(world.rank() % gpu_count());
  const Case c(1);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  Placed placed(world, c, partition, {.route = {.transport = transport}, .max_width = c.width});
  placed.run({});
  say_ready(world);
  if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  for (;;) placed.run({});
}
const RankProgram kLost("gpu lost", [](World& world) { lose_rank_1(world, DeviceTransport::vmm); });
const RankProgram kNvshmemLost("gpu lost by nvshmem",
                               [](World& world) { lose_rank_1(world, DeviceTransport::nvshmem); });

void expect_loss_ends_others(const std::string& program) {
  Job job({.program = program, .ranks = 3, .timeout_ms = 2000});
  job.await_ready(3);
  const auto begin = std::chrono::steady_clock::now();
  kill(job.rank(1), SIGKILL);
  const Outcome outcome = job.wait();
  EXPECT_NE(outcome.code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
  EXPECT_NE(outcome.all_errors().find("rank 1"), std::string::npos) << outcome.all_errors();
}

TEST(GpuAggregate, ALostRankEndsTheOthers) { expect_loss_ends_others("gpu lost"); }

TEST(GpuAggregate, ALostRankEndsTheOthersByNvshmem) {
  if (open_library(kNvshmem) == nullptr) GTEST_SKIP() << kNvshmem.name << " is not there";
  if (gpu_count() < 3) GTEST_SKIP() << "NVSHMEM needs a GPU for each of 3 ranks";
  expect_loss_ends_others("gpu lost by nvshmem");
}

// One rank fails on its own: it must not wait for the others in the heap's end.
const RankProgram kFailing("gpu failing by nvshmem", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Case c(1);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  Placed placed(world, c, partition,
                {.route = {.transport = DeviceTransport::nvshmem}, .max_width = c.width});
  placed.run({});
  expect(world.rank() != 1, "enough of it");
  for (;;) placed.run({});
});

TEST(GpuAggregate, ARankThatFailsEndsTheOthersByNvshmem) {
  if (open_library(kNvshmem) == nullptr) GTEST_SKIP() << kNvshmem.name << " is not there";
  if (gpu_count() < 2) GTEST_SKIP() << "NVSHMEM needs a GPU for each of 2 ranks";
  const Outcome outcome =
      run_job({.program = "gpu failing by nvshmem", .ranks = 2, .timeout_ms = 2000});
  EXPECT_EQ(outcome.code, 1) << outcome.all_errors();
  EXPECT_NE(outcome.all_errors().find("enough of it"), std::string::npos) << outcome.all_errors();
}

const RankProgram kTooMuch("gpu too much by nvshmem", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Case c(2);
  const Partition partition = partition_by_vertices(c.graph.vertices(), world.size());
  try {
    make_gpu_aggregator(
        world, c.graph, false, partition,
        {.route = {.transport = DeviceTransport::nvshmem}, .max_width = std::uint64_t{1} << 40});
  } catch (const DoesNotFitError&) {
    // After it, work that fits still runs.
    check_case(world, c, {Strategy::pipelined}, DeviceTransport::nvshmem);
    return;
  }
  throw Error("it does not fit");
});

TEST(GpuAggregate, NvshmemRefusesWhatDoesNotFit) {
  if (open_library(kNvshmem) == nullptr) GTEST_SKIP() << kNvshmem.name << " is not there";
  const Outcome outcome = run_job({.program = "gpu too much by nvshmem",
                                   .ranks = std::min(gpu_count(), 2),
                                   .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

}  // namespace
}  // namespace plait::test
