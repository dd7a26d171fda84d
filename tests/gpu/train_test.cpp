// Training and inference on one GPU against the CPU: the same initial weights and the same dropout,
// so the same course up to the order of sums.
#include "plait/nn/training/train.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/graph/dcsbm.h"
#include "plait/nn/operations/torch_device.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

// Keeps values that stand out of the noise, as a bag of words.
Csr32 words_of(const Features& dense) {
  std::vector<EdgeOffset> offsets{0};
  std::vector<std::uint32_t> columns;
  for (std::uint64_t i = 0; i < dense.rows; ++i) {
    for (std::uint64_t c = 0; c < dense.width; ++c)
      if (dense.f32[i * dense.width + c] > 0.6f) columns.push_back(static_cast<std::uint32_t>(c));
    offsets.push_back(columns.size());
  }
  const std::size_t count = columns.size();
  return {std::move(offsets), std::move(columns), std::vector<float>(count, 1.0f)};
}

struct Case {
  const char* kind;
  int layers;
  std::int64_t hidden;
  bool sparse = false;
  bool directed = false;  // and weighted
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.kind << " of " << c.layers << " layers of " << c.hidden
             << (c.sparse ? ", sparse" : ", dense") << (c.directed ? ", directed" : "");
}

Dataset dataset_of(const Case& c) {
  Dataset data = generate_dcsbm({.vertices = 600, .edges = 6000, .seed = 1});
  if (c.sparse) {
    data.features.sparse = words_of(data.features);
    data.features.f32 = {};
  }
  if (c.directed) {
    data.graph = test::random_csr<std::uint32_t>(600, 6000, 2, true);
    data.symmetric = false;
  }
  return data;
}

TrainConfig config_of(const Case& c, bool gpu, int epochs) {
  TrainConfig config{.epochs = epochs, .route = {.gpu = gpu}};
  config.model = {.kind = c.kind, .layers = c.layers, .hidden = c.hidden, .seed = 4};
  return config;
}

TrainResult train(const Dataset& data, const TrainConfig& config) {
  const auto world = World::alone();
  const std::atomic<bool> stop{false};
  Trainer trainer(*world, data, partition_by_vertices(data.vertices(), 1), config);
  return trainer.run([](const EpochResult&) {}, stop);
}

void expect_same_course(const TrainResult& found, const TrainResult& wanted) {
  ASSERT_EQ(found.epochs.size(), wanted.epochs.size());
  for (std::size_t e = 0; e < wanted.epochs.size(); ++e) {
    const EpochResult &a = found.epochs[e], &b = wanted.epochs[e];
    EXPECT_NEAR(a.loss, b.loss, 1e-3 * b.loss) << "epoch " << e;
    EXPECT_NEAR(a.validation_loss, b.validation_loss, 1e-3 * b.validation_loss) << "epoch " << e;
    EXPECT_NEAR(a.validation_metric, b.validation_metric, 0.01) << "epoch " << e;
    EXPECT_GT(a.milliseconds, 0);
  }
}

class GpuTraining : public testing::Test {
 protected:
  // Runs before any backward pass on the CPU.
  static void SetUpTestSuite() {
    use_gpu(0);
    torch_device(true);
  }
  ~GpuTraining() override { std::remove(path_.c_str()); }

  const std::string path_ = testing::TempDir() + "/plait-gpu-train-test.safetensors";
};

// Layers that transform first (32 -> 16 -> 7) and that aggregate first (32 -> 48).
TEST_F(GpuTraining, HasTheCourseOfTheCpu) {
  for (const Case& c :
       {Case{"gcn", 2, 16}, Case{"gcn", 3, 48}, Case{"gcn", 2, 16, true}, Case{"gcn", 3, 48, true},
        Case{"gcn", 3, 16, false, true}, Case{"gcn", 2, 48, true, true}, Case{"gcn", 1, 16},
        Case{"mlp", 2, 16}, Case{"mlp", 2, 16, true}}) {
    SCOPED_TRACE(testing::Message() << c);
    const Dataset data = dataset_of(c);
    expect_same_course(train(data, config_of(c, true, 20)), train(data, config_of(c, false, 20)));
  }
}

TEST_F(GpuTraining, GivesTheSameBitsAgain) {
  for (const bool sparse : {false, true}) {
    const Case c{"gcn", 3, 24, sparse, true};
    const Dataset data = dataset_of(c);
    const TrainResult first = train(data, config_of(c, true, 10));
    const TrainResult second = train(data, config_of(c, true, 10));
    for (std::size_t e = 0; e < first.epochs.size(); ++e)
      EXPECT_EQ(first.epochs[e].loss, second.epochs[e].loss) << e;
  }
}

// Checkpoints of either device go on, and are scored, on both.
TEST_F(GpuTraining, ChangesPlacesByCheckpoints) {
  const Case c{"gcn", 2, 16};
  const Dataset data = dataset_of(c);
  const Partition partition = partition_by_vertices(data.vertices(), 1);
  const TrainResult whole = train(data, config_of(c, false, 20));
  for (const bool gpu_first : {false, true}) {
    TrainConfig first = config_of(c, gpu_first, 10), second = config_of(c, !gpu_first, 20);
    first.checkpoint = second.resume = path_;
    train(data, first);
    expect_same_course(train(data, second), whole);

    const auto world = World::alone();
    const auto scores = [&](bool gpu) {
      return infer(*world, data, partition, {.checkpoint = path_, .route = {.gpu = gpu}});
    };
    const Scores here = scores(false), there = scores(true);
    ASSERT_EQ(here.values.size(), there.values.size());
    for (std::size_t i = 0; i < here.values.size(); ++i)
      ASSERT_NEAR(there.values[i], here.values[i], 1e-4 * (1 + std::abs(here.values[i]))) << i;
  }
}

TEST_F(GpuTraining, RefusesWhatDoesNotFit) {
  const Case c{"gcn", 64, 65536};
  EXPECT_THROW(train(dataset_of(c), config_of(c, true, 1)), DoesNotFitError);
}

}  // namespace
}  // namespace plait
