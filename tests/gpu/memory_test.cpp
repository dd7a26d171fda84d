// The memory of GPUs that runs take against the plan that was made before they began, with one
// process per rank. Prints both, and the items of the plan, so that one run shows what the plan
// lacks.
#include "plait/base/memory.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>

#include "plait/aggregate/cuda/aggregator.h"
#include "plait/aggregate/run_memory.h"
#include "plait/base/cuda/cuda.cuh"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/graph/dcsbm.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/training/train.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

const Dataset& large() {
  static const Dataset data = generate_dcsbm({.vertices = 1'000'000,
                                              .edges = 20'000'000,
                                              .classes = 47,
                                              .width = 100,
                                              .train_per_class = 2000,
                                              .seed = 3});
  return data;
}

// The most memory that has been in use on the GPU since this was made, at the moments of asking.
class Used {
 public:
  void look() { most_ = std::max(most_, gpu_used_memory()); }
  std::uint64_t bytes() const { return most_ - before_; }

 private:
  std::uint64_t before_ = (release_gpu_caches(), gpu_used_memory());
  std::uint64_t most_ = before_;
};

void report(const World& world, const std::string& name, const MemoryPlan& plan,
            std::uint64_t measured) {
  const std::uint64_t planned = plan.rank_total(world.rank());
  const double ratio = static_cast<double>(measured) / static_cast<double>(planned);
  std::string line =
      fmt::format("MEMORY {} rank {} of {}: planned {} measured {} ratio {:.3f}", name,
                  world.rank(), world.size(), format_bytes(planned), format_bytes(measured), ratio);
  for (const MemoryItem& item : plan.items)
    line += fmt::format("; {} {}", item.name,
                        format_bytes(item.bytes[static_cast<std::size_t>(world.rank())]));
  fmt::print(stderr, "{}\n", line);
  expect(std::abs(ratio - 1) <= 0.1, line);
}

struct Run {
  const char* kind;
  int layers;
  std::int64_t hidden;
  Strategy strategy = Strategy::pipelined;
};

void check_training(World& world, const Run& run) {
  const Dataset& data = large();
  TrainConfig config{.epochs = 6, .route = {.strategy = run.strategy, .gpu = true}};
  ModelConfig model = default_model(run.kind);
  model.layers = run.layers, model.hidden = run.hidden;
  config.model = model_for(model, data);
  const Partition partition = partition_by_edges(data.graph, world.size());
  const MemoryPlan plan = plan_training(data, partition, config);
  Used used;
  {
    const std::atomic<bool> stop{false};
    Trainer trainer(world, data, partition, config);
    used.look();
    std::vector<std::uint64_t> by_epoch;
    trainer.run(
        [&](const EpochResult&) {
          used.look();
          by_epoch.push_back(gpu_used_memory());
        },
        stop);
    // Recorded steps take no more than the steps before.
    expect(static_cast<double>(by_epoch.back()) <= 1.05 * static_cast<double>(by_epoch[1]),
           fmt::format("{} in use after epoch 1, {} at the end", format_bytes(by_epoch[1]),
                       format_bytes(by_epoch.back())));
  }
  report(world,
         fmt::format("{} of {} layers of {} by {}", run.kind, run.layers, run.hidden,
                     to_string(run.strategy)),
         plan, used.bytes());
}

void check_aggregation(World& world, Strategy strategy, std::uint64_t width) {
  const Dataset& data = large();
  const Partition partition = partition_by_edges(data.graph, world.size());
  const MemoryPlan plan =
      plan_run(data.graph, data.symmetric, partition,
               {.route = {.strategy = strategy, .gpu = true}, .widths = {width}});
  Used used;
  {
    const std::uint64_t floats = partition.size(world.rank()) * width;
    DeviceArray<float> x(floats), y(floats);
    const auto aggregator =
        make_gpu_aggregator(world, data.graph, data.symmetric, partition,
                            {.route = {.strategy = strategy}, .max_width = width});
    check_cuda(cudaMemset(x.data(), 0, floats * sizeof(float)), "x");
    aggregator->forward({}, x.data(), y.data(), width);
    aggregator->cost();
    used.look();
  }
  report(world, fmt::format("aggregate {} by {}", width, to_string(strategy)), plan, used.bytes());
}

using Check = std::function<void(World&)>;

Check sum_by(Strategy strategy) {
  return [=](World& world) { check_aggregation(world, strategy, 512); };
}
Check training_of(const Run& run) {
  return [=](World& world) { check_training(world, run); };
}

// Makes all checks on this rank's GPU, and throws all failures together.
void make(World& world, const std::vector<Check>& checks) {
  use_gpu(world.rank());
  torch_device(true);
  std::string failures;
  for (const Check& check : checks) {
    try {
      check(world);
    } catch (const LostRankError&) {
      throw;
    } catch (const Error& error) {
      failures += std::string(error.what()) + "\n";
    }
  }
  expect(failures.empty(), failures);
}

const RankProgram kMemory("gpu memory", [](World& world) {
  make(world,
       {sum_by(Strategy::pipelined), sum_by(Strategy::get), sum_by(Strategy::partial),
        training_of({"gcn", 3, 256}), training_of({"gcn", 3, 1024}), training_of({"gcn", 2, 64}),
        training_of({"sage", 3, 256}), training_of({"gin", 3, 128}), training_of({"gat", 2, 128}),
        training_of({"gatv2", 2, 128}), training_of({"transformer", 2, 128}),
        training_of({"mlp", 3, 256}), training_of({"gcn", 3, 256, Strategy::partial})});
});
// NCCL loads its kernels once in a process, so that each check of its memory has its own.
const RankProgram kBulkSum("gpu memory of a sum by bulk",
                           [](World& world) { make(world, {sum_by(Strategy::bulk)}); });
const RankProgram kReplicatedSum("gpu memory of a sum by replicate",
                                 [](World& world) { make(world, {sum_by(Strategy::replicate)}); });
const RankProgram kBulkTraining("gpu memory of training by bulk", [](World& world) {
  make(world, {training_of({"gcn", 3, 256, Strategy::bulk})});
});

TEST(GpuMemory, IsWhatWasPlanned) {
  for (const int ranks : {1, 2, 4}) {
    if (ranks > gpu_count()) continue;  // the memory of ranks on one GPU cannot be told apart
    for (const char* program :
         {"gpu memory", "gpu memory of a sum by bulk", "gpu memory of a sum by replicate",
          "gpu memory of training by bulk"}) {
      const Outcome outcome = run_job({.program = program, .ranks = ranks, .timeout_ms = 60000});
      for (const std::string& line : outcome.errors) fmt::print("{}\n", line);
      EXPECT_EQ(outcome.code, 0) << program << ", " << ranks << " ranks";
    }
  }
}

}  // namespace
}  // namespace plait::test
