// Whatever a .plait file holds, with right checksums: it is refused, or one step of training,
// aggregation and inference in both ways stay within its arrays and throw nothing but an Error.
#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "plait/aggregate/aggregate.h"
#include "plait/nn/inference/infer_by_layers.h"
#include "plait/nn/training/train.h"
#include "tests/fuzz/hostile_container.h"
#include "tests/fuzz/operate.h"

namespace {

using namespace plait;

void aggregate(World& world, const Dataset& dataset, const Partition& partition, Chooser& choose) {
  const Strategy strategy =
      choose.of(std::array{Strategy::bulk, Strategy::replicate, Strategy::get});
  const std::uint64_t width = 1 + choose.below(9);
  const auto aggregator = make_aggregator(
      world, make_graph_shards(dataset.graph, dataset.symmetric, partition, 0), strategy, width);
  std::vector<float> x(dataset.vertices() * width, 1), y(x.size());
  const Scaling scaling{.weighted = choose.one_in(2)};
  aggregator->forward(scaling, x.data(), y.data(), width);
  aggregator->backward(scaling, y.data(), x.data(), width);
}

TrainConfig training(Chooser& choose, const std::string& checkpoint) {
  TrainConfig config;
  ModelConfig& model = config.model;
  model.kind = choose.of(std::array{"gcn", "mlp", "sage", "gin", "gat", "gatv2", "transformer"});
  model.layers = 1 + choose.below(3);
  model.hidden = 4;
  const bool with_heads = model_kinds(KindTrait::heads).find(model.kind) != std::string::npos;
  model.heads = with_heads ? 1 + choose.below(2) : 1;
  model.pool = choose.of(std::array{Pool::sum, Pool::mean});
  model.norm = choose.of(std::array{NormKind::none, NormKind::batch, NormKind::layer});
  model.residual = choose.one_in(4);
  model.aggregation = choose.of(std::array{"mean", "max"});
  config.metric = choose.of(std::array{MetricKind::automatic, MetricKind::accuracy,
                                       MetricKind::roc_auc, MetricKind::micro_f1});
  config.normalize = choose.of(
      std::array{Normalize::automatic, Normalize::rows, Normalize::unit, Normalize::none});
  if (choose.one_in(8)) config.folds = {.count = 3, .test = choose.below(3)};
  config.split = choose.below(3);
  config.epochs = 1;
  config.checkpoint = checkpoint;
  return config;
}

void infer_both_ways(World& world, const Dataset& dataset, const Partition& partition,
                     const InferConfig& config) {
  const auto use = [&](const Scores& scores) {
    LabelCounts counts(scores.task, dataset);
    counts.add(0, scores.predicted());
    counts.met();
  };
  use(infer(world, dataset, partition, config));
  const std::string work = fuzz_path(".layers");
  std::filesystem::remove_all(work);
  const ByLayers by{
      .memory_limit = std::uint64_t{1} << 40, .work = {work, {}}, .graph = config.checkpoint};
  try_to([&] { infer_by_layers(world, dataset, partition, config, by, use); });
  std::filesystem::remove_all(work);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Chooser choose(data, size);
  const auto dataset = read_hostile(choose);
  if (!dataset) return 0;
  const auto world = World::alone();
  const Partition partition = make_partition(PartitionScheme::vertices, *dataset, 1);
  aggregate(*world, *dataset, partition, choose);
  const FuzzFile checkpoint(".safetensors");
  const std::atomic<bool> stop{false};
  try_to([&] {
    Trainer(*world, *dataset, partition, training(choose, checkpoint.path()))
        .run([](const EpochResult&) {}, stop);
    infer_both_ways(*world, *dataset, partition, {.checkpoint = checkpoint.path()});
  });
  return 0;
}
