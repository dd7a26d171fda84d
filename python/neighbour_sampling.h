// Neighbour sampling on tensors of either device, behind torch.classes.plait.NeighbourSampler.
#pragma once

#include <memory>
#include <tuple>
#include <vector>

#include "plait/sample/columns.h"
#include "plait/sample/neighbours.h"
#include "python/sample_tensors.h"

namespace plait {

// row, col, node, edge, tree, nodes_by_hop and edges_by_hop, as PyG's samplers return them. The
// tensors are where the graph is.
using PygSample = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor,
                             OptionalTensor, std::vector<std::int64_t>, std::vector<std::int64_t>>;

// Graphs as tensors, all on one device: checked arrays. Weights, if there are any, are float32, and
// times are int64.
struct SampledTensors {
  torch::Tensor rowptr, col;  // int64; int64 or int32
  OptionalTensor weights, edge_times, vertex_times;
};

// Samples one graph. Threads may do so at once.
class NeighbourSampling {
 public:
  virtual ~NeighbourSampling() = default;
  // Throws as NeighbourSampler::sample(). Seeds and their times are checked arrays of int64, each
  // on the CPU or where the graph is.
  virtual PygSample sample(const torch::Tensor& seeds, std::uint64_t key,
                           const OptionalTensor& times) = 0;
};

// Throw UsageError as checked_csr() and NeighbourSampler's constructor. The tensors are kept and
// read, so they must not be changed.
std::unique_ptr<NeighbourSampling> make_cpu_sampling(SampledTensors graph, SampleSettings settings);
// For tensors on a GPU. Throws UsageError in a build without CUDA, too.
std::unique_ptr<NeighbourSampling> make_gpu_sampling(SampledTensors graph, SampleSettings settings);

inline std::uint64_t edges_of(const Sample::Hop& hop) { return hop.edges.size(); }

// Returns a sample as tensors, which `empty` makes of a size, and `write` fills by their columns.
// `vertices`: their number. A hop has edges_of(hop) edges.
template <class AnySample, class Empty, class Write>
PygSample pyg_sample(const AnySample& sample, std::uint64_t vertices, bool disjoint, Empty empty,
                     Write write) {
  std::vector<std::int64_t> nodes_by_hop{static_cast<std::int64_t>(sample.seeds)}, edges_by_hop;
  std::uint64_t found = sample.seeds, edges = 0;
  for (const auto& hop : sample.hops) {
    nodes_by_hop.push_back(static_cast<std::int64_t>(hop.vertices - found));
    edges_by_hop.push_back(static_cast<std::int64_t>(edges_of(hop)));
    found = hop.vertices;
    edges += edges_of(hop);
  }
  const torch::Tensor row = empty(edges), col = empty(edges), edge = empty(edges);
  const torch::Tensor node = empty(vertices);
  OptionalTensor tree;
  if (disjoint) tree = empty(vertices);
  const auto data = [](const torch::Tensor& t) { return t.mutable_data_ptr<std::int64_t>(); };
  write(SampleColumns{data(row), data(col), data(edge), data(node), tree ? data(*tree) : nullptr});
  return {row, col, node, edge, tree, std::move(nodes_by_hop), std::move(edges_by_hop)};
}

}  // namespace plait
