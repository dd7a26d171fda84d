// Failures on one rank alone: the others get no numbers, and no endless wait. Ranks share GPUs
// where there are fewer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <cmath>

#include "plait/base/gpu.h"
#include "plait/exchange/cuda/graph.cuh"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/training/recorded.h"
#include "plait/symmetric/agreement.h"
#include "tests/gpu/endless_kernel.h"
#include "tests/support/random_graph.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::HasSubstr;

// The sum of a number over ranks, which every rank enqueues.
std::vector<float> sum_over_ranks(DeviceLink& link, float mine) {
  DeviceArray<float> value(std::vector{mine});
  link.operation(nullptr, kAnyStep, [&] { link.all_reduce_sum(value.data(), 1, nullptr); });
  return value.to_host();
}

const RankProgram kHalfWay("gpu operation fails half-way", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  DeviceLink link(world, DType::f32, {DeviceTransport::vmm, DeviceTransport::own});
  expect(sum_over_ranks(link, 1) == std::vector{static_cast<float>(world.size())}, "the first sum");
  world.barrier();  // a rank that fails before others have ended the sum makes NaN of it
  if (world.rank() == 1) {
    const std::string thrown = failure_of([&] {
      link.operation(nullptr, kAnyStep, [&] {
        link.signals().wait(std::vector<Signal>{{0, 0}}, nullptr);
        throw Error("no memory for the rest");
      });
    });
    expect(thrown == "no memory for the rest", thrown);
    const std::string again = failure_of([&] { sum_over_ranks(link, 1); });
    expect(again.find("has failed here before") != std::string::npos, again);
  } else {
    expect(std::isnan(sum_over_ranks(link, 1)[0]), "a number came of a failed operation");
    const std::string told = failure_of([&] { link.signals().check(); });
    expect(told.find("rank 1 has failed in an operation between GPUs") != std::string::npos, told);
    expect(!failure_of([&] { sum_over_ranks(link, 1); }).empty(), "the next operation began");
  }
  world.barrier();
});

TEST(GpuFailures, AnOperationThatThrowsHalfWayGivesNaNEverywhere) {
  const Outcome outcome = run_job({.program = "gpu operation fails half-way", .ranks = 3});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

const RankProgram kRecording("gpu recording fails on one rank", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const torch::Device device = torch_device(true);
  const OwnStream stream(device);
  const AnyCsr csr = random_csr<std::uint32_t>(50, 400, 1);
  const auto graph =
      c10::make_intrusive<GraphHandle>(world, csr, false, partition_by_vertices(50, world.size()),
                                       ExchangeOptions{.route = {.gpu = true}});
  Recorder recorder(*graph, true);
  const torch::Tensor sum = torch::zeros({1}, device);
  int calls = 0;
  for (int k = 1; k <= 6; ++k) {
    recorder.run(Recorder::step, [&] {
      if (++calls == 3 && world.rank() == 1) torch::zeros({std::int64_t{1} << 46}, device);
      torch::Tensor one = torch::ones({1}, device);
      graph->all_reduce_sum(one);
      sum.add_(one);
    });
    const auto found = sum.item<float>();
    graph->check();
    expect(found == static_cast<float>(k * world.size()), fmt::format("call {}: {}", k, found));
  }
  expect(calls == 7, fmt::format("{} calls", calls));
});

TEST(GpuFailures, ARecordingThatFailsOnOneRankIsDoneOnNone) {
  const Outcome outcome = run_job({.program = "gpu recording fails on one rank", .ranks = 2});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
  EXPECT_THAT(outcome.all_errors(), HasSubstr("plait: warning: rank 1: recording a step"));
}

// Rank 1's GPU hangs in work of its own after a step that all have done.
const RankProgram kAfterwards("gpu hangs after its step", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  DeviceLink link(world, DType::f32, {DeviceTransport::vmm, DeviceTransport::own});
  sum_over_ranks(link, 1);
  say_ready(world);
  if (world.rank() == 1) {
    launch_endless_kernel(nullptr);
    link.signals().mark(nullptr);
    check_cuda(cudaStreamSynchronize(nullptr), "the kernel");
  }
  world.barrier();
});

TEST(GpuFailures, AGpuThatHangsAfterItsStepLosesItsRank) {
  Job job({.program = "gpu hangs after its step",
           .ranks = 2,
           .timeout_ms = 5000,
           .environment = {{"PLAIT_GPU_TIMEOUT_MS", "3000"}}});
  job.rank(1);
  const auto start = steady_clock::now();
  const Outcome outcome = job.wait(60s);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_LT(steady_clock::now() - start, 10s);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("rank 1 has a GPU that has not moved on for"));
}

}  // namespace
}  // namespace plait::test
