#include "plait/nn/targets.h"

#include <torch/nn/functional/loss.h>

namespace plait {

Targets make_targets(World& world, const Dataset& dataset, const Partition& partition,
                     std::uint32_t split, const torch::Device& device) {
  Targets targets;
  const std::uint64_t own = partition.size(world.rank());
  torch::Tensor labels = torch::zeros({static_cast<std::int64_t>(own)}, torch::kInt64);
  std::array<std::vector<std::int64_t>, 4> rows;
  for (std::uint64_t r = 0; r < own; ++r) {
    const std::uint64_t v = partition.vertex(world.rank(), r);
    if (dataset.labels[v] < 0) continue;  // an unknown label neither trains nor counts
    labels.mutable_data_ptr<std::int64_t>()[r] = dataset.labels[v];
    const Split part = dataset.splits[split * dataset.vertices() + v];
    rows[static_cast<std::size_t>(part)].push_back(static_cast<std::int64_t>(r));
  }
  targets.labels = labels.to(device);
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const torch::Tensor list = torch::tensor(rows[s], torch::kInt64);
    targets.splits[s] = {list.to(device), labels.index_select(0, list).to(device)};
    targets.totals[s] = static_cast<double>(rows[s].size());
  }
  world.all_reduce_sum(targets.totals);
  return targets;
}

torch::Tensor losses(const torch::Tensor& scores, const SplitRows& split) {
  return torch::nll_loss(torch::log_softmax(scores.index_select(0, split.rows), 1), split.labels,
                         {}, at::Reduction::None);
}

}  // namespace plait
