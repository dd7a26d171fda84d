// A step that fails anywhere, on one rank or on all: the next result is right, or an error. Ranks
// share GPUs where there are fewer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "plait/base/error.h"
#include "plait/base/fault.h"
#include "plait/exchange/exchange.h"
#include "plait/graph/build.h"
#include "plait/kernels/cuda/spmm.cuh"
#include "plait/partition/partition.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"
#include "tests/gpu/endless_kernel.h"
#include "tests/gpu/part.h"

namespace plait::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Fault kFaults[] = {Fault::refusal, Fault::memory, Fault::device};

bool on_any(World& world, bool here) {
  const std::vector<bool> all = gather_values(world, here);
  return std::ranges::find(all, true) != all.end();
}

// A part of a step that is to fail, on all ranks or on rank 1.
struct Trial {
  Fault fault;
  int number;
  bool everywhere;

  std::string text() const {
    return fmt::format("fault {} of part {}{}", static_cast<int>(fault), number,
                       everywhere ? " on all ranks" : "");
  }
};

// Returns whether the step has so many parts on any rank.
bool try_fault(World& world, const Trial& trial) {
  Part part(world, strategy_under_test());
  const std::string before = failure_of([&] { part.expect_right("before"); });
  expect(before.empty(), trial.text() + ", before it: " + before);
  world.barrier();  // a rank that still looks at its result would be told of the fault
  const bool mine = trial.everywhere || world.rank() == 1;
  if (mine) switch_fault(trial.fault, trial.number);
  failure_of([&] { part.enqueue(); });
  const bool came = mine && !take_back_fault();
  if (world.rank() == 0) std::this_thread::sleep_for(20ms);  // others' rows are there first
  std::vector<float> y;
  const std::string refused = failure_of([&] {
    check_cuda(cudaMemset(part.y().data(), 0xff, part.y().size() * sizeof(float)), "y");
    part.enqueue();
    y = part.result();
    part.aggregator().check();
  });
  if (refused.empty()) part.expect_right(y, trial.text());
  world.barrier();
  return on_any(world, came);
}

const RankProgram kFaultsProgram("gpu step faults", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for (const bool everywhere : {false, true})
    for (const Fault fault : kFaults) {
      int number = 0;
      while (try_fault(world, {fault, number, everywhere})) ++number;
      expect(number >= 3, fmt::format("a step has {} parts", number));
    }
});

// A recording in which a step fails cannot be ended, and steps go on without it.
const RankProgram kRecordedFaults("gpu recorded step faults", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  {
    Part part(world, strategy_under_test(), stream);
    part.expect_right("before recording");
    for (int number = 0;; ++number) {
      check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording");
      switch_fault(Fault::memory, number);
      failure_of([&] { part.enqueue(); });
      const bool came = !take_back_fault();
      const bool refused = strategy_under_test() == Strategy::bulk;  // before the first part
      expect(!refused || !came, "a step of bulk was recorded");
      cudaGraph_t graph = nullptr;
      const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
      cudaGetLastError();
      if (graph != nullptr) cudaGraphDestroy(graph);
      expect((ended != cudaSuccess) == came,
             fmt::format("part {}: {}", number, cudaGetErrorName(ended)));
      part.expect_right("after a recording");
      if (!on_any(world, came)) break;
    }
  }
  cudaStreamDestroy(stream);
});

// A width that no sum takes is refused on all ranks, before anything crosses.
const RankProgram kTooWide("gpu too wide a step", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  const Strategy strategy = strategy_under_test();
  constexpr std::uint64_t kWidth = 3;
  const std::uint64_t wide = kMostSpmmWidth + 4;
  const Case c(random_csr<std::uint32_t>(16, 60, 4), kWidth, 5);
  const Partition partition = make_partition(PartitionScheme::hash, c.graph, world.size());
  Route route{.strategy = strategy};
  route.get.dw = 4;  // slices of 16 floats
  const auto aggregator =
      make_gpu_aggregator(world, c.graph, false, partition, {.route = route, .max_width = kWidth});
  const std::uint64_t own = partition.size(world.rank());
  const DeviceArray<float> x(
      std::span<const float>(own_part(c.x, partition, world.rank(), kWidth)));
  DeviceArray<float> y(own * kWidth), wide_x(own * wide), wide_y(own * wide);
  check_cuda(cudaMemset(wide_x.data(), 0, wide_x.size() * sizeof(float)), "x");
  const Expected expected(c, {});
  aggregator->reserve(wide);
  for (int round = 0; round < 3; ++round) {
    const std::string refused =
        failure_of([&] { aggregator->forward({}, wide_x.data(), wide_y.data(), wide); });
    expect(refused.find("too wide") != std::string::npos, "refused: " + refused);
    if (world.rank() == 1) std::this_thread::sleep_for(200ms);
    aggregator->forward({}, x.data(), y.data(), kWidth);
    const std::vector<float> found = y.to_host();
    aggregator->check();
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::uint64_t at = partition.vertex(world.rank(), i / kWidth) * kWidth + i % kWidth;
      expect(std::abs(found[i] - expected.y[at]) <= 2e-6 * expected.bound[at],
             fmt::format("row {} is {}, not {}", i / kWidth, found[i], expected.y[at]));
    }
  }
});

void expect_right_on_two(const std::string& program, const std::vector<std::string>& strategies) {
  std::vector<Job> jobs;  // beside each other: each spends its time in making graphs
  for (const std::string& strategy : strategies)
    jobs.emplace_back(JobOptions{.program = program,
                                 .ranks = 2,
                                 .timeout_ms = 20000,
                                 .environment = {{"TEST_STRATEGY", strategy}}});
  for (Job& job : jobs) {
    const Outcome outcome = job.wait(200s);
    EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
  }
}

TEST(GpuStepFaults, TheNextResultIsRightOrAnError) {
  expect_right_on_two("gpu step faults", {"pipelined", "partial", "get"});
}

TEST(GpuStepFaults, ARecordingWithOneIsInvalid) {
  expect_right_on_two("gpu recorded step faults", strategies_by_signals());
}

TEST(GpuStepFaults, TooWideASumLeavesNoTrace) {
  expect_right_on_two("gpu too wide a step", strategies_by_signals());
}

// Ranks wait in NCCL, or on the host, for rank 1, whose step has failed in one of its parts and
// whose process lives on: only the watch over ranks ends that.
const RankProgram kFaultElsewhere("gpu step fault elsewhere", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  Part part(world, strategy_under_test());
  part.expect_right("before the fault");
  world.barrier();
  const int number = std::atoi(std::getenv("TEST_PART"));
  if (world.rank() == 1) switch_fault(kFaults[number % 3], number);
  const std::string error = failure_of([&] { part.expect_right("the step"); });
  if (world.rank() == 1 && !take_back_fault()) {
    expect(!error.empty(), "the step did not fail");
    for (;;) std::this_thread::sleep_for(1s);
  }
  if (!error.empty()) throw Error(error);
  part.expect_right("the next step");
});

// Returns whether a step has so many parts.
bool fault_elsewhere(const std::string& strategy, int number) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = run_job(
      {.program = "gpu step fault elsewhere",
       .ranks = 2,
       .timeout_ms = 4000,
       .environment = {{"TEST_STRATEGY", strategy}, {"TEST_PART", std::to_string(number)}}});
  if (outcome.code == 0) return false;
  EXPECT_EQ(outcome.code, 1) << strategy << ", part " << number;
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s) << strategy << ", part " << number;
  EXPECT_THAT(outcome.all_errors(), HasSubstr("rank 1"));
  return true;
}

TEST(GpuStepFaults, RanksThatWaitElsewhereEnd) {
  std::vector<std::string> strategies{"paged"};
  if (gpu_count() > 1) strategies.push_back("bulk");  // NCCL wants a GPU for each rank
  for (const std::string& strategy : strategies) {
    int number = 0;
    while (fault_elsewhere(strategy, number)) ++number;
    EXPECT_GE(number, 3) << strategy;
  }
}

// A graph is placed on the GPUs of all ranks or of none, whatever fails on one.
const RankProgram kPlacingFaults("gpu placing faults", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  for (int number = 0;; ++number) {
    if (world.rank() == 1) switch_fault(kFaults[number % 3], number);
    const std::string error = failure_of([&] { Part(world, strategy_under_test()); });
    const bool came = world.rank() == 1 && !take_back_fault();
    const bool expected = on_any(world, came);
    expect(expected == !error.empty() && (error.empty() || error.starts_with("rank 1: ")),
           fmt::format("placing, part {}: {}", number, error));
    Part(world, strategy_under_test()).expect_right("after it");
    if (!expected) {
      expect(number >= 4, fmt::format("placing has {} parts", number));
      return;
    }
  }
});

TEST(GpuStepFaults, AGraphIsPlacedOnAllRanksOrOnNone) {
  std::vector<std::string> strategies = strategies_by_signals();
  strategies.push_back("paged");
  expect_right_on_two("gpu placing faults", strategies);
}

// Rank 1 leaves a training step outside of any operation, and goes on with the next batch: its
// forward meets the backward of rank 0.
const RankProgram kOtherStep("gpu another step", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  Part part(world, strategy_under_test());
  part.expect_right("before");
  part.enqueue_backward();
  part.result();
  part.expect_right("the forward of the batch");
  world.barrier();
  std::string error;
  std::vector<float> y;
  error = failure_of([&] {
    world.rank() == 1 ? part.enqueue() : part.enqueue_backward();
    y = part.result();
    part.aggregator().check();
  });
  expect(error.find("different operations") != std::string::npos ||
             error.find("rank ") != std::string::npos,
         "the steps were taken for one: " + error);
  fmt::print(stderr, "rank {} heard: {}\n", world.rank(), error);
  // Ranks of paged compare their steps on the host, before rows cross.
  if (strategy_under_test() == Strategy::paged) part.expect_right("after the refusal");
});

TEST(GpuStepFaults, StepsOfOtherKindsAreNotTakenForOne) {
  std::vector<std::string> strategies = strategies_by_signals();
  strategies.push_back("paged");
  for (const std::string& strategy : strategies) {
    const Outcome outcome = run_job({.program = "gpu another step",
                                     .ranks = 2,
                                     .timeout_ms = 10000,
                                     .environment = {{"TEST_STRATEGY", strategy}}});
    EXPECT_THAT(outcome.all_errors(), HasSubstr("different operations")) << strategy;
    if (strategy == "paged") {
      EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
    }
  }
}

// Rows of rank 0 read rows of rank 1 and no others do, so that in each direction one rank waits for
// the other. In their first step neither waits; in the second both do, each for a flag that the
// other's kind of step does not have.
const RankProgram kOneWay("gpu steps of one way", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  constexpr std::uint64_t kWidth = 8;
  EdgeList<std::uint32_t> edges{.vertices = 8};
  Buffer<std::uint32_t> source(4), target(4);
  for (std::uint32_t e = 0; e < 4; ++e) source[e] = 4 + e, target[e] = e;
  edges.source = std::move(source), edges.target = std::move(target);
  const AnyCsr graph = build_csr(AnyEdgeList(std::move(edges)));
  const Partition partition = partition_by_vertices(8, world.size());
  const auto aggregator =
      make_gpu_aggregator(world, graph, false, partition,
                          {.route = {.strategy = strategy_under_test()}, .max_width = kWidth});
  DeviceArray<float> x(std::vector<float>(4 * kWidth, 1)), y(std::vector<float>(4 * kWidth, 0));
  const bool first = world.rank() == 0;
  const std::string error = failure_of([&] {
    for (const bool along : {!first, first}) {
      along ? aggregator->forward({}, x.data(), y.data(), kWidth)
            : aggregator->backward({}, x.data(), y.data(), kWidth);
      y.to_host();
      aggregator->check();
    }
  });
  expect(error.find("different operations") != std::string::npos, "heard: " + error);
});

TEST(GpuStepFaults, WaitsForAFlagThatNoStepRaisesEnd) {
  for (const char* strategy : {"pipelined", "partial"}) {
    const Outcome outcome = run_job({.program = "gpu steps of one way",
                                     .ranks = 2,
                                     .timeout_ms = 10000,
                                     .environment = {{"TEST_STRATEGY", strategy}}});
    EXPECT_EQ(outcome.code, 0) << strategy << outcome.all_errors();
  }
}

// Rank 0 waits in NCCL for rank 1, whose step has failed: only the end of its process ends that.
const RankProgram kBulkFault("gpu bulk step fails", [](World& world) {
  use_gpu(world.rank() % gpu_count());
  Part part(world, Strategy::bulk);
  part.expect_right("before the fault");
  if (world.rank() == 1) switch_fault(Fault::device, 0);
  const std::string error = failure_of([&] { part.enqueue(); });
  if (world.rank() == 1) expect(!error.empty(), "the step did not fail");
  part.result();
  while (failure_of([&] { world.check_alive(); }).empty()) std::this_thread::sleep_for(1ms);
  part.aggregator().check();
});

TEST(GpuStepFaults, RanksThatWaitInNcclEnd) {
  if (gpu_count() < 2) GTEST_SKIP() << "NCCL wants a GPU for each rank";
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome =
      run_job({.program = "gpu bulk step fails", .ranks = 2, .timeout_ms = 4000});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("failed in an operation between GPUs"));
}

// A step that is recorded and replayed as by a user, whose own waits nobody marks.
class RecordedPart {
 public:
  explicit RecordedPart(World& world) : world_(world), part_(world, strategy_under_test(), made()) {
    part_.expect_right("before recording");
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording");
    part_.enqueue();
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamEndCapture(stream_, &graph), "recording");
    check_cuda(cudaGraphInstantiate(&executable_, graph, 0), "recording");
  }
  Part& part() { return part_; }
  cudaStream_t stream() const { return stream_; }
  void replay() { check_cuda(cudaGraphLaunch(executable_, stream_), "a replay"); }
  void wait() { check_cuda(cudaStreamSynchronize(stream_), "the stream"); }
  // Lets rank 1's GPU hang before `step` is enqueued, and waits for the step.
  template <class Step>
  void hang_before(Step step) {
    say_ready(world_);
    if (world_.rank() == 1) launch_endless_kernel(stream_);
    step();
    wait();
    world_.barrier();
  }

 private:
  cudaStream_t made() {
    use_gpu(world_.rank() % gpu_count());
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    return stream_;
  }

  World& world_;
  cudaStream_t stream_ = nullptr;
  Part part_;
  cudaGraphExec_t executable_ = nullptr;
};

// Rank 1's GPU hangs before a step, after replays that nobody announced.
const RankProgram kAfterReplays("gpu hangs after replays", [](World& world) {
  RecordedPart recorded(world);
  Part& part = recorded.part();
  for (int k = 0; k < 3; ++k) recorded.replay();
  recorded.wait();
  part.expect_right(part.result(), "after replays");
  recorded.hang_before([&] { part.enqueue(); });
});

// Rank 1's GPU hangs in a replay that was announced while others, unannounced, were under way.
const RankProgram kAnnouncedReplay("gpu hangs in an announced replay", [](World& world) {
  RecordedPart recorded(world);
  auto& aggregator = recorded.part().aggregator();
  for (int k = 0; k < 3; ++k) recorded.replay();
  aggregator.replay(aggregator.recorded_steps(), recorded.stream());
  recorded.hang_before([&] { recorded.replay(); });
});

void expect_loss_of_hanging_rank(const std::string& program) {
  Job job({.program = program,
           .ranks = 2,
           .timeout_ms = 5000,
           .environment = {{"TEST_STRATEGY", "pipelined"}, {"PLAIT_GPU_TIMEOUT_MS", "3000"}}});
  job.rank(1);
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = job.wait(60s);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 12s);
  EXPECT_THAT(outcome.all_errors(), HasSubstr("rank 1 has a GPU that has not moved on for"));
}

TEST(GpuStepFaults, AGpuThatHangsInAnAnnouncedReplayLosesItsRank) {
  expect_loss_of_hanging_rank("gpu hangs in an announced replay");
}

TEST(GpuStepFaults, AGpuThatHangsAfterUnannouncedReplaysLosesItsRank) {
  expect_loss_of_hanging_rank("gpu hangs after replays");
}

}  // namespace
}  // namespace plait::test
