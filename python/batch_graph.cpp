// Graphs of edges that are on a GPU, made there: of batches, whose edges live for one step.
//
// Edges are sorted by their targets, unless they are already, as a loader's are; edges of a target
// keep their order. The host waits for the checks of ids and weights, for whether targets are in
// order, and for the counts that plan the sum. The arrays are copies: numbers that the caller
// writes to its tensors later do not reach them, and they do not keep the caller's tensors.
#include <limits>
#include <memory>

#include "plait/aggregate/cuda/sampled_edges.h"
#include "plait/base/process_owned.h"
#include "plait/nn/operations/torch_device.h"
#include "python/edge_tensors.h"
#include "python/operations.h"

namespace plait {
namespace {

using torch::Tensor;

bool are_in_order(const Tensor& ids) {
  const std::int64_t count = ids.numel();
  if (count < 2) return true;
  return (ids.narrow(0, 1, count - 1) >= ids.narrow(0, 0, count - 1)).all().item<bool>();
}

// Edges by their targets.
struct BatchArrays {
  Tensor offsets;   // int64, vertices + 1
  Tensor sources;   // int32, one per edge
  Tensor weights;   // float32, one per edge, or undefined
  Tensor vertices;  // int64: the number of each vertex; keys the dropout of attention
  Tensor counts;    // float32: the number of each vertex's edges

  std::int64_t count() const { return vertices.numel(); }
};

// The edges have been checked.
BatchArrays by_target(const EdgeTensors& edges) {
  const auto copied = [](const Tensor& t, torch::ScalarType type) {
    return t.to(type, /*non_blocking=*/false, /*copy=*/true).contiguous();
  };
  Tensor sources = copied(edges.index[0], torch::kInt32);
  Tensor targets = copied(edges.index[1], torch::kInt32), weights;
  if (edges.weight) weights = copied(*edges.weight, torch::kFloat32);
  if (!are_in_order(targets)) {
    Tensor order;
    std::tie(targets, order) = targets.sort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
    sources = sources.index_select(0, order);
    if (weights.defined()) weights = weights.index_select(0, order);
  }
  const Tensor offsets = offsets_of(targets, edges.vertices);
  return {offsets, sources, weights,
          torch::arange(edges.vertices, torch::dtype(torch::kInt64).device(edges.index.device())),
          offsets.diff().to(torch::kFloat32)};
}

template <class To, class From>
const To* data_of(const Tensor& t) {
  if (!t.defined()) return nullptr;
  return reinterpret_cast<const To*>(t.const_data_ptr<From>());
}

GpuSampledEdges view_of(const std::shared_ptr<const BatchArrays>& arrays) {
  return {.own = static_cast<std::uint64_t>(arrays->count()),
          .inputs = static_cast<std::uint64_t>(arrays->count()),
          .edges = static_cast<std::uint64_t>(arrays->sources.numel()),
          .offsets = data_of<EdgeOffset, std::int64_t>(arrays->offsets),
          .sources = data_of<Slot, std::int32_t>(arrays->sources),
          .weights = data_of<float, float>(arrays->weights),
          .vertices = data_of<std::uint64_t, std::int64_t>(arrays->vertices),
          .arrays = arrays};
}

c10::intrusive_ptr<GraphHandle> batch_graph(const Tensor& edge_index, std::int64_t num_nodes,
                                            const OptionalTensor& edge_weight) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return with_python_errors([&] {
    World& world = current_world();
    require<UsageError>(world.size() == 1, "edges on GPUs are the batches of one rank, not of {}",
                        world.size());
    require<UsageError>(edge_index.is_cuda(), "the edges of a batch graph must be on a GPU");
    const OnGpuOf gpu(edge_index.device());
    use_gpu(edge_index.device().index());
    torch_device(true);  // so that libtorch gives back cached memory
    const EdgeTensors edges{edge_index, num_nodes, edge_weight};
    check_edges(edges);
    require<UsageError>(num_nodes < kMost && edge_index.size(1) < kMost,
                        "{} edges between {} nodes are too many for a batch graph",
                        edge_index.size(1), num_nodes);
    // To free memory that two streams have used is work for a GPU.
    const std::shared_ptr<const BatchArrays> arrays =
        process_owned(std::make_unique<const BatchArrays>(by_target(edges)));
    const c10::Stream stream = work_stream(edge_index.device());
    for (const Tensor& t : {arrays->offsets, arrays->sources, arrays->weights, arrays->vertices})
      if (t.defined() && t.numel() > 0) t.record_stream(stream);
    const StreamOrder order(stream);
    auto* const on = stream.native_handle();
    auto aggregator = make_gpu_sample_aggregator(view_of(arrays), {on, on},
                                                 std::make_shared<std::atomic<bool>>(false));
    return c10::make_intrusive<GraphHandle>(world, std::move(aggregator), stream, arrays->counts);
  });
}

// Returns the offsets, the sources and the weights (or none) of the edges by their targets.
std::vector<Tensor> edges_by_target(const Tensor& edge_index, std::int64_t num_nodes,
                                    const OptionalTensor& edge_weight) {
  const EdgeTensors edges{edge_index, num_nodes, edge_weight};
  with_python_errors([&] { check_edges(edges); });
  BatchArrays arrays = by_target(edges);
  std::vector<Tensor> found{arrays.offsets, arrays.sources};
  if (arrays.weights.defined()) found.push_back(arrays.weights);
  return found;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plait, m) {
  register_graph_class();
  m.def(
      "batch_graph(Tensor edge_index, int num_nodes, Tensor? edge_weight=None) "
      "-> __torch__.torch.classes.plait.Graph",
      &batch_graph);
  // Lets tests check the conversion on any device.
  m.def("edges_by_target(Tensor edge_index, int num_nodes, Tensor? edge_weight=None) -> Tensor[]",
        &edges_by_target);
}

}  // namespace plait
