// Layers against the same computation on dense matrices by libtorch alone.
#include "plait/nn/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/training/checkpoint.h"
#include "tests/support/dense_graph.h"
#include "tests/support/error_of.h"

namespace plait {
namespace {

using test::expect_close;
using testing::HasSubstr;
using Fixture = test::DenseGraph;

TEST(Aggregate, IsTheDenseProductWithItsGradient) {
  const Fixture f(false);
  const auto handle = f.handle({});
  const torch::Tensor pre = torch::rand({23}) + 0.5, post = torch::rand({23}) + 0.5;
  const torch::Tensor a = f.x.clone().requires_grad_(), b = f.x.clone().requires_grad_();
  const torch::Tensor y = aggregate(a, handle, true, pre, post);
  const torch::Tensor expected = post.unsqueeze(1) * f.adjacency.matmul(pre.unsqueeze(1) * b);
  expect_close(y, expected);
  const torch::Tensor direction = torch::randn_like(y);
  (y * direction).sum().backward();
  (expected * direction).sum().backward();
  expect_close(a.grad(), b.grad());
}

// The gradient of |A^T g(x)|^2 passes through the backward of the backward.
TEST(Aggregate, HasSecondDerivatives) {
  const Fixture f(false);
  const auto handle = f.handle({});
  const auto gradient_of_gradient = [&](const auto& multiply) {
    const torch::Tensor x = f.x.clone().requires_grad_();
    const torch::Tensor y = multiply(x);
    const auto first = torch::autograd::grad({y.pow(3).sum()}, {x}, {}, true, true);
    return torch::autograd::grad({first[0].pow(2).sum()}, {x})[0];
  };
  const auto ours = gradient_of_gradient(
      [&](const torch::Tensor& x) { return aggregate(x, handle, true, {}, {}); });
  const auto dense =
      gradient_of_gradient([&](const torch::Tensor& x) { return f.adjacency.matmul(x); });
  EXPECT_LT((ours - dense).norm().item<double>(), 1e-5 * dense.norm().item<double>());
}

TEST(Aggregate, RefusesOtherShapesAndTypes) {
  const Fixture f(false);
  const auto handle = f.handle({});
  EXPECT_THROW(aggregate(torch::zeros({22, 3}), handle, true, {}, {}), c10::Error);
  EXPECT_THROW(aggregate(torch::zeros({23}), handle, true, {}, {}), c10::Error);
  EXPECT_THROW(aggregate(torch::zeros({23, 3}, torch::kFloat64), handle, true, {}, {}), c10::Error);
  EXPECT_THROW(aggregate(torch::zeros({23, 3}), handle, true, torch::zeros({5}), {}), c10::Error);
}

// Weights whose layers transform first (9 -> 4 -> 3) and aggregate first (9 -> 12 -> 20).
class GcnForward : public testing::TestWithParam<std::tuple<bool, int>> {};

TEST_P(GcnForward, IsTheDenseFormulaWithItsGradients) {
  const auto [sparse, hidden] = GetParam();
  const Fixture f(sparse);
  const Model model({.kind = "gcn",
                     .layers = 3,
                     .hidden = hidden,
                     .inputs = 9,
                     .outputs = hidden == 4 ? 3 : 20,
                     .seed = 5});
  const InputFeatures input(f.features, f.partition, 0, Normalize::none);
  const torch::Tensor scores = model.forward(input, f.handle(model.shard_options()), {});

  // Gives one loop per vertex: of weight 1, or the weight of the last loop that it had.
  torch::Tensor looped = f.adjacency.clone();
  for (std::int64_t i = 0; i < 23; ++i) {
    looped[i][i] = 1;
    for (EdgeOffset e = f.graph.offsets[static_cast<std::size_t>(i)];
         e < f.graph.offsets[static_cast<std::size_t>(i) + 1]; ++e)
      if (f.graph.neighbours[e] == static_cast<std::uint32_t>(i)) looped[i][i] = f.graph.weights[e];
  }
  const torch::Tensor d = looped.sum(1).rsqrt();
  const torch::Tensor a = d.unsqueeze(1) * looped * d.unsqueeze(0);
  std::vector<torch::Tensor> copies;
  torch::Tensor h = f.x;
  for (std::size_t l = 0; l < 3; ++l) {
    copies.push_back(model.parameters()[2 * l].detach().clone().requires_grad_());
    h = a.matmul(h.matmul(copies.back().t())) + model.parameters()[2 * l + 1].detach();
    if (l < 2) h = h.relu();
  }
  expect_close(scores, h);
  const torch::Tensor direction = torch::randn_like(h);
  (scores * direction).sum().backward();
  (h * direction).sum().backward();
  for (std::size_t l = 0; l < 3; ++l)
    expect_close(model.parameters()[2 * l].grad(), copies[l].grad());
}

INSTANTIATE_TEST_SUITE_P(Forms, GcnForward,
                         testing::Combine(testing::Bool(), testing::Values(4, 12)));

Features dense_features(const torch::Tensor& x) {
  Features dense{.rows = static_cast<std::uint64_t>(x.size(0)),
                 .width = static_cast<std::uint64_t>(x.size(1))};
  dense.f32 = std::vector<float>(x.const_data_ptr<float>(), x.const_data_ptr<float>() + x.numel());
  return dense;
}

// A layer takes room for what it computes at its edges, whatever kind the layers beside it are.
TEST(EdgeMemory, IsThatOfTheWidestLayer) {
  const ModelConfig gat{
      .kind = "gat", .layers = 2, .hidden = 12, .inputs = 5, .outputs = 7, .heads = 3};
  EXPECT_EQ(edge_memory_of(gat).scratch, 12u);
  EXPECT_EQ(edge_memory_of(gat).rows_per_sum, kAttentionRecord);
  ModelConfig many = gat;
  many.output_heads = 4;  // their mean is taken of 4 x 7 columns
  EXPECT_EQ(edge_memory_of(many).scratch, 28u);
  ModelConfig sage{.kind = "sage", .layers = 2, .hidden = 12, .inputs = 5, .outputs = 7};
  EXPECT_EQ(edge_memory_of(sage).rows_per_sum, 1u);
  sage.aggregation = "min";
  EXPECT_EQ(edge_memory_of(sage).rows_per_sum, kExtremumRecord);
  EXPECT_EQ(edge_memory_of(sage).scratch, 0u);
}

// The size that is known before a model is made is that of its matrices.
TEST(SizeOfModel, IsThatOfItsMatrices) {
  for (const char* kind : {"gcn", "mlp", "sage", "gin", "gat", "gatv2", "transformer"})
    for (const bool residual : {false, true}) {
      ModelConfig config = default_model(kind);
      config.layers = 3, config.hidden = 80, config.heads = 1, config.norm = NormKind::none;
      config.inputs = 100, config.outputs = 47, config.residual = residual;
      config.pool = Pool::none;
      double matrices = 0;
      for (const torch::Tensor& p : Model(config).parameters())
        if (p.dim() == 2) matrices += static_cast<double>(p.numel());
      EXPECT_EQ(size_of_model(config).weights, matrices) << kind << (residual ? " residual" : "");
    }
}

std::vector<PassWidths> scheduled_of(const ModelConfig& config) {
  std::vector<PassWidths> all;
  for (const EdgeOperation& operation : operations_of(config))
    all.push_back(pass_widths(operation));
  return all;
}

// Of each layer: forward and backward.
TEST(Schedules, AreOfOperationsThatAreNoSums) {
  const ModelConfig gat{.kind = "gat", .layers = 1, .inputs = 5, .outputs = 7};
  // Results are y, u, b and norm; dh, v and ds. Rows are [h | s] and [dy | t | norm | c].
  EXPECT_EQ(scheduled_of(gat), (std::vector<PassWidths>{{16 * 4, 12 * 4, EdgeWork::attention},
                                                        {15 * 4, 12 * 4, EdgeWork::attention}}));
  ModelConfig sage{.kind = "sage", .layers = 1, .inputs = 5, .outputs = 7};
  EXPECT_TRUE(scheduled_of(sage).empty());
  sage.aggregation = "max";
  EXPECT_EQ(scheduled_of(sage), (std::vector<PassWidths>{{10 * 4, 8 * 4, EdgeWork::extremum},
                                                         {5 * 4, 16 * 4, EdgeWork::extremum}}));
  ModelConfig deep = gat;
  deep.layers = 3;
  EXPECT_EQ(scheduled_of(deep).size(), 6u);
  EXPECT_TRUE(scheduled_of({.kind = "gcn", .inputs = 5, .outputs = 7}).empty());
}

TEST(InputFeatures, SparseAndDenseDropTheSameElements) {
  const Fixture sparse(true);
  const Features dense = dense_features(sparse.x);
  const Dropout dropout(3, 0.5f);
  const DropoutStep step{&dropout, 4, 0};
  const torch::Tensor w = torch::randn({5, 9}).requires_grad_(),
                      v = w.detach().clone().requires_grad_();
  const torch::Tensor a =
      InputFeatures(sparse.features, sparse.partition, 0, Normalize::rows).times(w, step);
  const torch::Tensor b = InputFeatures(dense, sparse.partition, 0, Normalize::rows).times(v, step);
  expect_close(a, b);
  const torch::Tensor direction = torch::randn_like(a);
  (a * direction).sum().backward();
  (b * direction).sum().backward();
  expect_close(w.grad(), v.grad());
}

// Returns the features as a model reads them, dense.
torch::Tensor read_features(const Features& features, const Partition& partition, Normalize n) {
  const InputFeatures input(features, partition, 0, n);
  const auto width = static_cast<std::int64_t>(features.width);
  return input.is_sparse() ? input.times(torch::eye(width), {}) : input.dense({});
}

TEST(InputFeatures, AreNormalizedByRow) {
  const Fixture f(true);
  const torch::Tensor sums = f.x.sum(1, true), lengths = f.x.square().sum(1, true).sqrt();
  for (const Features& features : {f.features, dense_features(f.x)}) {
    const auto read = [&](Normalize n) { return read_features(features, f.partition, n); };
    expect_close(read(Normalize::none), f.x);
    expect_close(read(Normalize::rows), torch::where(sums == 0, 0.0, f.x / sums));
    expect_close(read(Normalize::unit), torch::where(lengths == 0, 0.0, f.x / lengths));
    expect_close(read(Normalize::automatic),
                 read(features.is_sparse() ? Normalize::rows : Normalize::none));
  }
}

TEST(InputFeatures, BagsOfManyWordsHaveUnitLength) {
  const Partition partition = partition_by_vertices(6, 1);
  const auto automatic = [&](const torch::Tensor& x) {
    return read_features(dense_features(x), partition, Normalize::automatic);
  };
  const torch::Tensor few = (torch::arange(6 * 150).view({6, 150}) % 3 == 0).to(torch::kFloat32);
  const torch::Tensor many = torch::ones({6, 150});
  expect_close(automatic(few), few / 50);
  expect_close(automatic(many), many / std::sqrt(150.0));
  expect_close(automatic(-many), -many);
}

TEST(TorchDevice, OfAGpuThatIsNotThere) {
  EXPECT_TRUE(torch_device(false).is_cpu());
  EXPECT_EQ(current_stream(torch::kCPU), nullptr);
#ifdef PLAIT_SANITIZED
  GTEST_SKIP() << "libtorch's CUDA part is not loaded under a sanitizer";
#endif
  if (gpu_count() > 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_THROW(torch_device(true), UsageError);
}

TEST(Checkpoint, BringsBackModelAndOptimizer) {
  const std::string path = testing::TempDir() + "/plait-checkpoint-test.safetensors";
  const ModelConfig config{
      .kind = "gcn", .layers = 2, .hidden = 4, .inputs = 9, .outputs = 3, .seed = 1};
  const auto step = [](const Model& m, Adam& adam, float scale) {
    for (const auto& p : m.parameters()) p.mutable_grad() = torch::full_like(p, scale);
    adam.step();
  };
  Model model(config), other(config);
  const AdamOptions rate{.learning_rate = 0.01};
  Adam adam(model.parameters(), rate), other_adam(other.parameters(), rate);
  step(model, adam, 0.5f);
  step(model, adam, -0.1f);
  std::vector<torch::Tensor> best, other_best;
  for (const auto& p : model.parameters()) {
    best.push_back(p.detach() * 2);
    other_best.push_back(torch::zeros_like(p));
  }
  const std::map<std::string, std::string> settings{
      {"metric", "accuracy"}, {"split", "split 0"}, {"normalize", "rows"}};
  const TrainingState begun{settings, {{"the number of vertices", "5"}}};
  TrainingState state = begun;
  state.history = {{.epoch = 0, .loss = 2.5}, {.epoch = 1, .loss = 1.25, .milliseconds = 3}};
  state.best_epoch = 1;
  save_checkpoint(path, model, best, adam, state);
  const TrainingState back =
      resume_checkpoint(read_safetensors(path), path, begun, other, other_best, other_adam);
  EXPECT_EQ(back.graph, begun.graph);
  ASSERT_EQ(back.history.size(), 2u);
  EXPECT_EQ(back.history[1].loss, 1.25);
  EXPECT_EQ(back.best_epoch, 1);
  step(model, adam, 0.3f);
  step(other, other_adam, 0.3f);
  for (std::size_t i = 0; i < best.size(); ++i) {
    EXPECT_TRUE(torch::equal(model.parameters()[i], other.parameters()[i]));
    EXPECT_TRUE(torch::equal(best[i], other_best[i]));
  }
  const Model loaded = load_model(read_safetensors(path), path);
  EXPECT_TRUE(torch::equal(loaded.parameters()[2], best[2]));

  ModelConfig wider = config;
  wider.hidden = 5;
  Model wrong(wider);
  Adam wrong_adam(wrong.parameters(), rate);
  EXPECT_THAT(error_of([&] {
                resume_checkpoint(read_safetensors(path), path, begun, wrong, other_best,
                                  wrong_adam);
              }),
              HasSubstr("metadata 'hidden': value 4 is not this run's 5"));
  const auto error_with = [&](const TrainingState& here) {
    return error_of([&] {
      resume_checkpoint(read_safetensors(path), path, here, other, other_best, other_adam);
    });
  };
  for (const auto& [name, value] : settings) {
    auto others = settings;
    others[name] = "fold 3 of 10";
    EXPECT_THAT(error_with({others, begun.graph}),
                HasSubstr(fmt::format("metadata '{}': value {} is not this run's fold 3 of 10",
                                      name, value)));
  }
  EXPECT_THAT(error_with({settings, {{"the number of vertices", "6"}}}),
              HasSubstr("another graph: the number of vertices is 5 there and 6 here"));
  EXPECT_THAT(error_with({settings, {{"the number of vertices", "5"}, {"the size", "2"}}}),
              HasSubstr("another graph: the size is missing there and 2 here"));
  EXPECT_THAT(error_with({settings, {}}),
              HasSubstr("another graph: the number of vertices is 5 there and missing here"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace plait
