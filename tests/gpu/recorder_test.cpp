// Work that is recorded and replayed: its results, its memory, and recordings that fail.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/training/recorded.h"
#include "tests/support/random_graph.h"

namespace plait {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 18;  // floats

c10::intrusive_ptr<GraphHandle> on_gpu(World& world) {
  const AnyCsr graph = test::random_csr<std::uint32_t>(10, 20, 1);
  return c10::make_intrusive<GraphHandle>(world, graph, false, partition_by_vertices(10, 1),
                                          ExchangeOptions{.route = {.gpu = true}});
}

class Recording : public testing::Test {
 protected:
  static void SetUpTestSuite() { use_gpu(0); }

  const std::unique_ptr<World> world_ = World::alone();
  const torch::Device device_ = torch_device(true);
  const OwnStream stream_{device_};
  const c10::intrusive_ptr<GraphHandle> graph_ = on_gpu(*world_);
  Recorder recorder_{*graph_, true};
  int calls_ = 0;  // of the work itself
};

TEST_F(Recording, RepeatsEachPiece) {
  const torch::Tensor x = torch::zeros({1}, device_), y = torch::zeros({1}, device_);
  for (int k = 1; k <= 6; ++k) {
    recorder_.run(Recorder::step, [&] { ++calls_, x.add_(1); });
    recorder_.run(Recorder::evaluation, [&] { y.copy_(x * 10); });
    EXPECT_EQ(y.item<float>(), 10.0f * static_cast<float>(k));
  }
  EXPECT_EQ(calls_, 3);
}

// Tensors that are kept by one piece are not overwritten by the other.
TEST_F(Recording, PiecesShareTheirMemory) {
  const std::uint64_t before = gpu_used_memory();
  std::uint64_t most = 0;
  torch::Tensor kept, other;
  const torch::Tensor one = torch::ones({1}, device_);
  const auto work = [&](torch::Tensor& result) {
    const torch::Tensor wide = one.expand({256 * kMiB}) * 2;
    result = wide.sum() / (256.0 * kMiB);
  };
  for (int k = 0; k < 6; ++k) {
    recorder_.run(Recorder::step, [&] { work(kept); });
    recorder_.run(Recorder::evaluation, [&] { work(other), other.add_(1); });
    EXPECT_EQ(kept.item<float>(), 2);
    EXPECT_EQ(other.item<float>(), 3);
    most = std::max(most, gpu_used_memory() - before);
  }
  // The 256 MiB are taken once, and not again for each piece or for work that was not recorded.
  EXPECT_LT(most, std::uint64_t{400} << 20);
}

// Work that asks for too much while it is recorded is done anew, and never recorded again.
TEST_F(Recording, GoesOnUnrecordedWhereItDoesNotFit) {
  const torch::Tensor x = torch::zeros({1}, device_);
  const std::uint64_t before = gpu_used_memory();
  testing::internal::CaptureStderr();
  for (int k = 1; k <= 6; ++k) {
    recorder_.run(Recorder::step, [&] {
      const torch::Tensor some = torch::zeros({256 * kMiB}, device_);
      if (++calls_ == 3) torch::zeros({std::int64_t{1} << 46}, device_);
      x.add_(1).add_(some.sum());
    });
    EXPECT_EQ(x.item<float>(), static_cast<float>(k));
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(calls_, 7);
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_TRUE(said.starts_with("plait: warning: recording a step needs more")) << said;
  release_gpu_caches();
  EXPECT_LT(gpu_used_memory(), before + (std::uint64_t{64} << 20));  // the pool is given back
}

// An error of Plait's own ends the recording, and leaves the GPU and the memory as they were.
TEST_F(Recording, AnErrorEndsIt) {
  const torch::Tensor x = torch::zeros({1}, device_);
  const std::uint64_t before = gpu_used_memory();
  const auto step = [&] {
    recorder_.run(Recorder::step, [&] {
      const torch::Tensor some = torch::zeros({256 * kMiB}, device_);
      x.add_(1).add_(some.sum());
      if (++calls_ == 3) throw LostRankError(1, "rank 1 is lost");
    });
  };
  step(), step();
  EXPECT_THROW(step(), LostRankError);
  EXPECT_EQ(x.add_(1).item<float>(), 3);
  release_gpu_caches();
  EXPECT_LT(gpu_used_memory(), before + (std::uint64_t{64} << 20));
  step();  // is recorded now
  step();
  EXPECT_EQ(x.item<float>(), 5);
  EXPECT_EQ(calls_, 4);
}

}  // namespace
}  // namespace plait
