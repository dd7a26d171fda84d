#include "plait/nn/operations/graph_set.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/nn/layers/linear_map.h"
#include "plait/nn/operations/exact_sums.h"

namespace plait {
namespace {

// Row g lists the places in `graph_of` where g stands.
Csr32 members_of(std::span<const std::int64_t> graph_of, std::uint64_t graphs) {
  Buffer<EdgeOffset> offsets(graphs + 1, 0);
  for (const std::int64_t g : graph_of) ++offsets[static_cast<std::size_t>(g) + 1];
  std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<EdgeOffset> next(offsets.begin(), offsets.end() - 1);
  Buffer<std::uint32_t> rows(graph_of.size());
  for (std::size_t i = 0; i < graph_of.size(); ++i)
    rows[next[static_cast<std::size_t>(graph_of[i])]++] = static_cast<std::uint32_t>(i);
  return {std::move(offsets), std::move(rows), {}};
}

}  // namespace

GraphSet::GraphSet(const World& world, const Dataset& dataset, const VertexList& vertices,
                   const torch::Device& device) {
  const torch::Tensor ids = vertices.to(torch::kCPU);
  graph_of_ = torch::empty_like(ids);
  auto* const graph_of = graph_of_.mutable_data_ptr<std::int64_t>();
  std::transform(ids_of(ids), ids_of(ids) + ids.numel(), graph_of,
                 [&](std::uint64_t v) { return dataset.graph_ids[v]; });
  const auto count = static_cast<std::size_t>(ids.numel());
  members_ = std::make_shared<const SparseMatrix>(members_of({graph_of, count}, dataset.graphs),
                                                  count, device);
  ones_ = torch::ones({ids.numel()}, device);
  graph_of_ = graph_of_.to(device);

  const auto begin = [&](int rank) { return std::int64_t{dataset.graphs} * rank / world.size(); };
  first_ = begin(world.rank());
  own_ = torch::arange(first_, begin(world.rank() + 1), torch::kInt64).to(device);
  torch::Tensor sizes = torch::zeros({std::int64_t{dataset.graphs}}, torch::kInt64);
  for (const std::uint32_t g : dataset.graph_ids) ++sizes.mutable_data_ptr<std::int64_t>()[g];
  graphs_ = std::int64_t{dataset.graphs};
  most_ = static_cast<std::uint64_t>(sizes.numel() > 0 ? sizes.max().item<std::int64_t>() : 0);
  scale_ = sizes.narrow(0, first_, own_.size(0))
               .to(torch::kFloat32)
               .clamp_min(1)
               .reciprocal()
               .unsqueeze(1)
               .to(device);
}

torch::Tensor GraphSet::pool(const torch::Tensor& h, const GraphRef& graph, Pool pool) const {
  const torch::Tensor all =
      graph->exact() ? exact_sums(h, graph) : sum_over_ranks(own_sums(h), graph);
  const torch::Tensor own = all.narrow(0, first_, own_.size(0));
  return pool == Pool::mean ? own * scale_ : own;
}

torch::Tensor GraphSet::own_sums(const torch::Tensor& h) const {
  const auto sum = [members = members_, ones = ones_](const torch::Tensor& rows) {
    return members->times(ones, rows);
  };
  const auto spread = [graph_of = graph_of_](const torch::Tensor& rows) {
    return rows.index_select(0, graph_of);
  };
  return linear_map(h, sum, spread);
}

torch::Tensor GraphSet::exact_sums(const torch::Tensor& h, const GraphRef& graph) const {
  const auto sum = [graph_of = graph_of_, graphs = graphs_, most = most_,
                    graph](const torch::Tensor& rows) {
    return exact_group_sums(rows, graph_of, graphs, most, *graph);
  };
  // A graph's gradient is not 0 on one rank alone, so that the sum over ranks is exact.
  const auto spread = [graph_of = graph_of_, graph](const torch::Tensor& rows) {
    torch::Tensor of_all = rows.clone();
    graph->all_reduce_sum(of_all);
    return of_all.index_select(0, graph_of);
  };
  return linear_map(h, sum, spread);
}

}  // namespace plait
