// A small random graph with features, as Plait holds it and as dense matrices of libtorch.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "plait/nn/layers/input.h"
#include "plait/nn/operations/graph_handle.h"
#include "tests/support/random_graph.h"

namespace plait::test {

struct DenseGraph {
  std::unique_ptr<World> world = World::alone();
  Csr32 graph;
  Partition partition;
  Features features;
  torch::Tensor x, adjacency;

  // The graph is weighted, with loops and parallel edges.
  explicit DenseGraph(bool sparse, unsigned seed = 1, std::uint64_t vertices = 23,
                      std::size_t edges = 120)
      : graph(random_csr<std::uint32_t>(vertices, edges, seed, true)),
        partition(partition_by_vertices(vertices, 1)) {
    torch::manual_seed(seed);
    const auto n = static_cast<std::int64_t>(vertices);
    x = torch::randn({n, 9});
    if (sparse) x = x * (torch::rand({n, 9}) < 0.3);
    std::vector<float> values(x.const_data_ptr<float>(), x.const_data_ptr<float>() + x.numel());
    features = {.rows = vertices, .width = 9};
    if (sparse)
      features.sparse = to_sparse(values);
    else
      features.f32 = values;
    adjacency = torch::zeros({n, n});
    for (std::int64_t i = 0; i < n; ++i)
      for (EdgeOffset e = graph.offsets[static_cast<std::size_t>(i)];
           e < graph.offsets[static_cast<std::size_t>(i) + 1]; ++e)
        adjacency[i][graph.neighbours[e]] += graph.weights[e];
  }

  static Csr32 to_sparse(const std::vector<float>& values) {
    std::vector<EdgeOffset> offsets{0};
    std::vector<std::uint32_t> columns;
    std::vector<float> kept;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != 0) {
        columns.push_back(static_cast<std::uint32_t>(i % 9));
        kept.push_back(values[i]);
      }
      if (i % 9 == 8) offsets.push_back(columns.size());
    }
    return {offsets, columns, kept};
  }

  c10::intrusive_ptr<GraphHandle> handle(const ShardOptions& options) const {
    return c10::make_intrusive<GraphHandle>(*world, graph, false, partition,
                                            ExchangeOptions{.shards = options});
  }
};

inline void expect_close(const torch::Tensor& a, const torch::Tensor& b) {
  EXPECT_TRUE(torch::allclose(a, b, 1e-5, 1e-6)) << (a - b).abs().max();
}

}  // namespace plait::test
