// Neighbour sampling as Python sees it: torch.classes.plait.NeighbourSampler and
// torch.ops.plait.sample_key.
//
// Calls take no lock while they sample, so that several threads may do so at once: nothing that
// they use is shared, except the workspaces that wait.
#include <algorithm>
#include <tuple>

#include "plait/base/parallel.h"
#include "plait/base/spares.h"
#include "plait/sample/draw.h"
#include "plait/sample/neighbours.h"
#include "plait/world/launch.h"
#include "python/operations.h"
#include "python/sample_tensors.h"

namespace plait {
namespace {

using torch::Tensor;

constexpr std::size_t kTargetGrain = 2048;

// The edges of a sample, hop after hop.
class EdgeColumns {
 public:
  explicit EdgeColumns(std::uint64_t edges)
      : row_(raw_tensor(edges)), col_(raw_tensor(edges)), edge_(raw_tensor(edges)) {}

  // One pass by all threads for all columns.
  void add(const Sample::Hop& hop) {
    std::int64_t* const row = row_.mutable_data_ptr<std::int64_t>() + size_;
    std::int64_t* const col = col_.mutable_data_ptr<std::int64_t>() + size_;
    std::int64_t* const edge = edge_.mutable_data_ptr<std::int64_t>() + size_;
    parallel_blocks(hop.targets(), kTargetGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t t = begin; t < end; ++t)
        std::fill(col + hop.offsets[t], col + hop.offsets[t + 1],
                  static_cast<std::int64_t>(hop.first_target + t));
      for (std::size_t i = hop.offsets[begin]; i < hop.offsets[end]; ++i) {
        row[i] = hop.neighbours[i];
        edge[i] = static_cast<std::int64_t>(hop.edges[i]);
      }
    });
    size_ += hop.edges.size();
  }

  Tensor row() const { return row_; }    // numbers of sources
  Tensor col() const { return col_; }    // numbers of targets
  Tensor edge() const { return edge_; }  // places in the CSR

 private:
  Tensor row_, col_, edge_;
  std::size_t size_ = 0;
};

std::uint64_t edges_of(const Sample& sample) {
  std::uint64_t edges = 0;
  for (const Sample::Hop& hop : sample.hops) edges += hop.edges.size();
  return edges;
}

// row, col, node, edge, tree, nodes_by_hop and edges_by_hop, as PyG's samplers return them.
using PygSample = std::tuple<Tensor, Tensor, Tensor, Tensor, OptionalTensor,
                             std::vector<std::int64_t>, std::vector<std::int64_t>>;

PygSample pyg_sample(const Sample& sample, bool disjoint) {
  EdgeColumns columns(edges_of(sample));
  std::vector<std::int64_t> nodes_by_hop{static_cast<std::int64_t>(sample.seeds)}, edges_by_hop;
  std::uint64_t found = sample.seeds;
  for (const Sample::Hop& hop : sample.hops) {
    columns.add(hop);
    nodes_by_hop.push_back(static_cast<std::int64_t>(hop.vertices - found));
    edges_by_hop.push_back(static_cast<std::int64_t>(hop.edges.size()));
    found = hop.vertices;
  }
  OptionalTensor tree;
  if (disjoint) tree = tensor_of<std::uint32_t>(sample.trees);
  return {columns.row(),  columns.col(), tensor_of<std::uint64_t>(sample.vertices),
          columns.edge(), tree,          nodes_by_hop,
          edges_by_hop};
}

// A graph to sample, and the tensors of its values, checked.
struct SampledGraph {
  Csr64 csr;
  OptionalTensor weights, edge_times, vertex_times;

  SampleValues values() const {
    return {span_of<float>(weights), span_of<std::int64_t>(edge_times),
            span_of<std::int64_t>(vertex_times)};
  }
};

class SamplerHandle : public torch::CustomClassHolder {
 public:
  SamplerHandle(SampledGraph graph, SampleSettings settings)
      : graph_(std::move(graph)), sampler_(graph_.csr, std::move(settings), graph_.values()) {}

  PygSample sample(const Tensor& seeds, std::int64_t key, const OptionalTensor& times) {
    const Tensor ids = checked_array(seeds, "seeds", torch::kInt64);
    const OptionalTensor moments = checked_values(times, ids.numel(), "times", torch::kInt64);
    return with_python_errors([&] {
      const ThreadCount threads(thread_share());
      const auto workspace = workspaces_.borrow([&] { return sampler_.workspace(); });
      const Sample found = sampler_.sample(ids_in(ids), static_cast<std::uint64_t>(key), *workspace,
                                           span_of<std::int64_t>(moments));
      return pyg_sample(found, sampler_.settings().disjoint);
    });
  }

 private:
  SampledGraph graph_;
  NeighbourSampler sampler_;
  Spares<NeighbourSampler::Workspace> workspaces_;
};

// The tensors must not be changed while the sampler lives, which views them.
c10::intrusive_ptr<SamplerHandle> make_sampler(const Tensor& rowptr, const Tensor& col,
                                               std::vector<std::int64_t> fanouts, bool replace,
                                               bool disjoint, bool all_targets, bool last,
                                               const OptionalTensor& weights,
                                               const OptionalTensor& edge_times,
                                               const OptionalTensor& vertex_times) {
  const Tensor rows = checked_array(rowptr, "rowptr", torch::kInt64);
  const Tensor neighbours = checked_array(col, "col", torch::kInt64);
  const std::int64_t vertices = rows.numel() - 1, edges = neighbours.numel();
  SampledGraph graph{
      .csr = {},
      .weights = checked_values(weights, edges, "weights", torch::kFloat32),
      .edge_times = checked_values(edge_times, edges, "edge_times", torch::kInt64),
      .vertex_times = checked_values(vertex_times, vertices, "vertex_times", torch::kInt64)};
  return with_python_errors([&] {
    const ThreadCount threads(thread_share());
    graph.csr = checked_csr(rows, neighbours);
    return c10::make_intrusive<SamplerHandle>(
        std::move(graph),
        SampleSettings{.fanouts = std::move(fanouts),
                       .replace = replace,
                       .disjoint = disjoint,
                       .targets = all_targets ? HopTargets::all : HopTargets::newest,
                       .time = last ? TimeRule::last : TimeRule::uniform});
  });
}

std::int64_t key_of_batch(std::int64_t seed, std::int64_t batch) {
  return static_cast<std::int64_t>(
      sample_key(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(batch)));
}

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.class_<SamplerHandle>("NeighbourSampler")
      .def(torch::init(&make_sampler))
      .def("sample", [](const c10::intrusive_ptr<SamplerHandle>& sampler, const Tensor& seeds,
                        std::int64_t key, const OptionalTensor& times) {
        return sampler->sample(seeds, key, times);
      });
  m.def("sample_key(int seed, int batch) -> int", &key_of_batch);
}

}  // namespace
}  // namespace plait
