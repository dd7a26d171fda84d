#include "plait/nn/training/targets.h"

namespace plait {

Targets make_targets(World& world, const Dataset& dataset, std::span<const Split> split,
                     const VertexList& own) {
  Targets targets;
  const torch::Tensor list = own.to(torch::kCPU);
  const std::span ids(ids_of(list), static_cast<std::size_t>(list.numel()));
  const auto classes = static_cast<std::uint64_t>(dataset.classes);
  const bool sets = !dataset.label_sets.empty();
  torch::Tensor labels = sets ? torch::zeros({list.numel(), dataset.classes})
                              : torch::zeros({list.numel()}, torch::kInt64);
  std::array<std::vector<std::int64_t>, 4> rows;
  for (std::size_t r = 0; r < ids.size(); ++r) {
    if (sets) {
      std::ranges::copy(dataset.label_sets.span().subspan(ids[r] * classes, classes),
                        labels.mutable_data_ptr<float>() + r * classes);
    } else {
      if (dataset.labels[ids[r]] < 0) continue;  // an unknown label neither trains nor counts
      labels.mutable_data_ptr<std::int64_t>()[r] = dataset.labels[ids[r]];
    }
    rows[static_cast<std::size_t>(split[ids[r]])].push_back(static_cast<std::int64_t>(r));
  }
  targets.labels = labels.to(own.device());
  for (std::size_t s = 0; s < rows.size(); ++s) {
    const torch::Tensor part = torch::tensor(rows[s], torch::kInt64);
    targets.splits[s] = {part.to(own.device()), labels.index_select(0, part).to(own.device())};
    targets.totals[s] = static_cast<double>(rows[s].size());
  }
  world.all_reduce_sum(targets.totals);
  return targets;
}

}  // namespace plait
