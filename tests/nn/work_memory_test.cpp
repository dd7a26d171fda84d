// The memory that runs take on the CPU against the plan that was made before they began.
#include "plait/nn/memory/work_memory.h"

#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "plait/aggregate/run_memory.h"
#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/graph/dcsbm.h"
#include "plait/nn/memory/tensor_trace.h"
#include "plait/nn/training/train.h"
#include "plait/world/report.h"
#include "tests/support/memory_peak.h"

namespace plait {
namespace {

// Rows of 122 floats and more are above what malloc() keeps for itself (32 MiB): pieces of that
// size would lie scattered, more in one run than in the next.
constexpr std::uint64_t kVertices = 72000;

const Dataset& large() {
  static const Dataset data = generate_dcsbm(
      {.vertices = kVertices, .edges = 360000, .width = 128, .train_per_class = 2000, .seed = 3});
  return data;
}

void expect_near(std::uint64_t measured, const MemoryPlan& plan, const std::string& name) {
  const auto planned = static_cast<double>(plan.rank_total(0));
  const double ratio = static_cast<double>(measured) / planned;
  std::printf("%-24s planned %s, measured %s: %.3f\n", name.c_str(),
              format_bytes(plan.rank_total(0)).c_str(), format_bytes(measured).c_str(), ratio);
  EXPECT_NEAR(ratio, 1, 0.1) << name;
}

TrainConfig config_of(const Dataset& data, const char* kind, std::int64_t hidden, int layers) {
  TrainConfig config{.epochs = 2};
  ModelConfig model = default_model(kind);
  model.layers = layers, model.hidden = hidden;
  config.model = model_for(model, data);
  return config;
}

void train(const Dataset& data, const TrainConfig& config) {
  const auto world = World::alone();
  const std::atomic<bool> stop{false};
  Trainer trainer(*world, data, partition_by_vertices(data.vertices(), 1), config);
  trainer.run([](const EpochResult&) {}, stop);
}

// Sanitizers keep freed memory, so that a process holds more than it uses.
#ifdef PLAIT_SANITIZED
constexpr bool kMeasurable = false;
#else
constexpr bool kMeasurable = true;
#endif

struct Trained {
  const char* kind;
  std::int64_t hidden;
  bool exact = false;
  const char* aggregation = nullptr;
};
class WorkMemory : public testing::TestWithParam<Trained> {};

TEST_P(WorkMemory, OfTrainingIsWhatWasPlanned) {
  if (!kMeasurable) GTEST_SKIP() << "measured without sanitizers";
  const auto [kind, hidden, exact, aggregation] = GetParam();
  const Dataset& data = large();
  TrainConfig config = config_of(data, kind, hidden, 2);
  config.route.exact = exact;
  if (aggregation != nullptr) config.model.aggregation = aggregation;
  keep_freed_memory();  // as plait train does
  const Dataset small = generate_dcsbm({.vertices = 600, .edges = 6000, .width = 128, .seed = 1});
  TrainConfig first = config;
  first.model = model_for(first.model, small);
  train(small, first);  // libraries and threads are there then
  const MemoryPlan plan = plan_training(data, partition_by_vertices(data.vertices(), 1), config);
  // The least of two runs: pieces that the allocator keeps may lie so that blocks find no room.
  std::uint64_t least = ~std::uint64_t{0};
  for (int run = 0; run < 2; ++run) {
    const test::MemoryPeak peak;
    train(data, config);
    least = std::min(least, peak.bytes());
  }
  expect_near(least, plan, kind + std::string(exact ? ", exact" : aggregation ? ", max" : ""));
}

INSTANTIATE_TEST_SUITE_P(Models, WorkMemory,
                         testing::Values(Trained{"gcn", 256}, Trained{"sage", 128},
                                         Trained{"sage", 122, false, "max"}, Trained{"gin", 128},
                                         Trained{"gat", 128}, Trained{"gat", 128, true},
                                         Trained{"gatv2", 128}, Trained{"transformer", 128}),
                         [](const auto& one) {
                           return one.param.kind + std::string(one.param.exact         ? "_exact"
                                                               : one.param.aggregation ? "_max"
                                                                                       : "");
                         });

TEST(RunMemory, OfAnAggregationIsWhatWasPlanned) {
  if (!kMeasurable) GTEST_SKIP() << "measured without sanitizers";
  const Dataset& data = large();
  const Partition partition = partition_by_vertices(kVertices, 1);
  const auto world = World::alone();
  constexpr std::uint64_t kWidth = 256;
  const MemoryPlan plan = plan_run(data.graph, true, partition,
                                   {.route = {.strategy = Strategy::bulk}, .widths = {kWidth}});
  const test::MemoryPeak peak;
  const Buffer<float> x(kVertices * kWidth, 1.0f), scale(kVertices, 2.0f);
  Buffer<float> y(kVertices * kWidth);
  const auto aggregator = make_aggregator(*world, make_graph_shards(data.graph, true, partition, 0),
                                          Strategy::bulk, kWidth);
  aggregator->forward({scale.data()}, x.data(), y.data(), kWidth);
  expect_near(peak.bytes(), plan, "aggregate");
}

// A run is refused on every rank alike, with the figures, and holds nothing afterwards.
TEST(RunMemory, RefusesWhatDoesNotFit) {
  const Dataset& data = large();
  const Partition partition = partition_by_vertices(kVertices, 1);
  const auto world = World::alone();
  for (const std::uint64_t width : {std::uint64_t{1} << 30, ~std::uint64_t{0}}) {
    try {
      require_run_fits(*world, data.graph, true, partition,
                       {.route = {.strategy = Strategy::bulk}, .widths = {width}}, "the run");
      ADD_FAILURE() << width;
    } catch (const DoesNotFitError& error) {
      EXPECT_EQ(std::string(error.what()).find("the run needs "), 0u) << error.what();
    }
  }
  TrainConfig config = config_of(data, "gcn", std::int64_t{1} << 32, 3);
  EXPECT_THROW(require_training_fits(*world, data, partition, config), DoesNotFitError);
}

// --- rehearsals ---

Rehearsal rehearsal(std::uint64_t rows) {
  return {rows, trace_tensors([&](const auto& kept) {
            const auto n = static_cast<std::int64_t>(rows);
            const torch::Tensor weights = torch::zeros({1000}), x = torch::zeros({n, 100});
            kept();
            torch::Tensor y = x.neg();  // three of a size at once, then two
            torch::Tensor z = y.neg();
            y = torch::Tensor();
            z = z.narrow(1, 0, 50).clone();
          })};
}

TEST(TensorTrace, TellsWhatManyRowsTake) {
  const Rehearsal few = rehearsal(10), more = rehearsal(20);
  const WorkBytes work = work_bytes(few, more, 100000, BlockMemory::kept);
  EXPECT_EQ(work.kept, 4000 + 40'000'000);
  EXPECT_EQ(work.most, 4000 + 120'000'000);
}

// 40,000,256 bytes are 38.15 MiB, in a segment of 40. The third block, half as large, takes a part
// of the piece that the second leaves.
TEST(TensorTrace, TellsWhatLibtorchsCacheTakes) {
  constexpr std::uint64_t kMiB = 1 << 20;
  const WorkBytes work = work_bytes(rehearsal(10), rehearsal(20), 100000, BlockMemory::cached);
  EXPECT_EQ(work.kept, (40 + 2) * kMiB);
  EXPECT_EQ(work.most, (3 * 40 + 2) * kMiB);
}

// Blocks for few rows find room in pieces in which those for many do not.
TEST(TensorTrace, TellsByTotalsIfCoursesDiffer) {
  const auto rehearse = [](std::uint64_t rows) {
    return Rehearsal{rows, trace_tensors([&](const auto& kept) {
                       const auto n = static_cast<std::int64_t>(rows);
                       torch::zeros({100000});  // given back at once
                       if (rows > 10) torch::zeros({1});
                       const torch::Tensor x = torch::zeros({n, 100});
                       kept();
                       const torch::Tensor y = x.neg();
                     })};
  };
  const WorkBytes work = work_bytes(rehearse(10), rehearse(20), 1000000, BlockMemory::kept);
  EXPECT_EQ(work.kept, 400'000'000);
}

// libtorch's error for arrays on the CPU has no type of its own, and several lines.
TEST(Report, OfAnArrayThatDoesNotFit) {
  testing::internal::CaptureStderr();
  int code = 0;
  try {
    torch::empty({std::int64_t{1} << 50});
  } catch (const std::exception& error) {
    code = report_error(error);
  }
  EXPECT_EQ(code, static_cast<int>(ExitCode::does_not_fit));
  // Before it, the allocator of a sanitizer prints a line of its own.
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::EndsWith("plait: there is no memory left\n"));
}

TEST(TensorTrace, LeavesTheAllocatorAsItWas) {
  const auto* const before = c10::GetCPUAllocator();
  EXPECT_THROW(trace_tensors([](const auto&) { throw Error("no"); }), Error);
  EXPECT_EQ(c10::GetCPUAllocator(), before);
}

}  // namespace
}  // namespace plait
