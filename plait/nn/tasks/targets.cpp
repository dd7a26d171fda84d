#include "plait/nn/tasks/targets.h"

#include <algorithm>

namespace plait {

torch::Tensor labels_of(const Dataset& dataset, std::span<const std::uint64_t> examples) {
  const auto rows = static_cast<std::int64_t>(examples.size());
  const auto classes = static_cast<std::uint64_t>(dataset.classes);
  if (dataset.label_sets.empty()) {
    torch::Tensor labels = torch::empty({rows}, torch::kInt64);
    std::ranges::transform(
        examples, labels.mutable_data_ptr<std::int64_t>(),
        [&](std::uint64_t example) { return std::max(dataset.labels[example], 0); });
    return labels;
  }
  torch::Tensor labels = torch::empty({rows, dataset.classes});
  auto* out = labels.mutable_data_ptr<float>();
  for (const std::uint64_t example : examples)
    out = std::ranges::copy(dataset.label_sets.span().subspan(example * classes, classes), out).out;
  return labels;
}

Targets make_targets(World& world, const Dataset& dataset, std::span<const Split> split,
                     const VertexList& own) {
  Targets targets;
  const torch::Tensor list = own.to(torch::kCPU);
  const std::span ids(ids_of(list), static_cast<std::size_t>(list.numel()));
  const torch::Tensor labels = labels_of(dataset, ids);
  std::array<std::vector<std::int64_t>, 4> rows;
  for (std::size_t r = 0; r < ids.size(); ++r) {
    // An unknown label neither trains nor counts.
    if (dataset.label_sets.empty() && dataset.labels[ids[r]] < 0) continue;
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
