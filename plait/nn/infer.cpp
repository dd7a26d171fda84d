#include <torch/utils.h>

#include <algorithm>

#include "plait/base/memory.h"
#include "plait/nn/checkpoint.h"
#include "plait/nn/gpu_torch.h"
#include "plait/nn/model.h"
#include "plait/nn/train.h"

namespace plait {

std::vector<std::int64_t> Scores::best() const {
  std::vector<std::int64_t> result(rows);
  for (std::uint64_t i = 0; i < rows; ++i) {
    const auto row = values.span().subspan(i * classes, classes);
    result[i] = std::ranges::max_element(row) - row.begin();
  }
  return result;
}

namespace {

// Refuses what cannot fit on this host, by the rows of the widest layer, before any is made.
void require_room(const Dataset& dataset, const ModelConfig& model, std::uint64_t rows) {
  std::uint64_t most = 0;
  for (int l = 0; l < model.layers; ++l) {
    std::uint64_t floats = layer_floats(model, l);
    if (l == 0 && dataset.features.is_sparse()) floats -= dataset.features.width;
    most = std::max(most, floats);
  }
  const double bytes = static_cast<double>(rows) * static_cast<double>(most) * sizeof(float);
  require_memory(bytes < 0x1p63 ? static_cast<std::uint64_t>(bytes) : ~std::uint64_t{0},
                 "the widest layer of the model on all vertices");
}

}  // namespace

Scores infer(World& world, const Dataset& dataset, const Partition& partition,
             const InferConfig& config) {
  const torch::NoGradGuard no_grad;
  const torch::Device device = torch_device(config.gpu);
  const Model model = load_model_for(dataset, config.checkpoint, device);
  if (!config.gpu)
    require_room(dataset, model.config(),
                 world.one_host() ? dataset.vertices() : partition.size(world.rank()));
  const InputFeatures input(dataset.features, partition, world.rank(), config.normalize, device);
  ShardOptions shard_options = model.shard_options();
  shard_options.transposed = false;
  const auto graph = c10::make_intrusive<GraphHandle>(
      world, dataset.graph, dataset.symmetric, partition,
      GraphHandleOptions{shard_options, config.strategy, model.moved_width(input.is_sparse()),
                         config.gpu, config.transport});
  const torch::Tensor own = model.forward(input, graph, {}).to(torch::kCPU).contiguous();

  const auto parts = world.all_gather(
      std::as_bytes(std::span(own.const_data_ptr<float>(), static_cast<std::size_t>(own.numel()))));
  if (world.rank() != 0) return {};
  const auto classes = static_cast<std::uint64_t>(own.size(1));
  Buffer<float> all(dataset.vertices() * classes);
  partition.gather_rows(parts, classes * sizeof(float), std::as_writable_bytes(all.span()));
  return {dataset.vertices(), classes, std::move(all)};
}

}  // namespace plait
