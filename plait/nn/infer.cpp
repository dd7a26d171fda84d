#include <torch/utils.h>

#include <algorithm>

#include "plait/base/error.h"
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

Scores infer(World& world, const Dataset& dataset, const Partition& partition,
             const InferConfig& config) {
  const torch::NoGradGuard no_grad;
  const torch::Device device = torch_device(config.gpu);
  const Model model = load_model(read_safetensors(config.checkpoint), config.checkpoint, device);
  require<UsageError>(!dataset.features.empty(), "{} has no features", dataset.name);
  const auto width = static_cast<std::int64_t>(dataset.features.width);
  if (model.config().inputs != width)
    throw InputError(
        config.checkpoint, "metadata 'inputs'",
        fmt::format("the model reads {} features, the graph has {}", model.config().inputs, width),
        "use the graph that it was trained on, or one like it");
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
