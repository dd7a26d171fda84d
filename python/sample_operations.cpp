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

namespace plait {
namespace {

using torch::Tensor;

constexpr std::size_t kSampleGrain = std::size_t{1} << 16;
constexpr std::size_t kTargetGrain = 2048;

Tensor checked_array(const Tensor& t, const char* name, torch::ScalarType type) {
  TORCH_CHECK_VALUE(t.device().is_cpu(), name, " is on ", t.device(), "; use .cpu()");
  TORCH_CHECK_VALUE(t.layout() == torch::kStrided, name, " is sparse; use .to_dense()");
  TORCH_CHECK_VALUE(t.scalar_type() == type, name, " holds ", t.scalar_type(), "; use ", type);
  TORCH_CHECK_VALUE(t.dim() == 1, name, " has shape ", t.sizes(), ", but must have one dimension");
  return t.contiguous();
}

// A view of numbers that are not negative; signed numbers of the same size have the same bits.
std::span<const std::uint64_t> ids_of(const Tensor& t) {
  return {reinterpret_cast<const std::uint64_t*>(t.const_data_ptr<std::int64_t>()),
          static_cast<std::size_t>(t.numel())};
}

Array<std::uint64_t> array_of(const Tensor& t) { return {std::make_shared<Tensor>(t), ids_of(t)}; }

template <class T>
std::span<const T> span_of(const OptionalTensor& t) {
  if (!t) return {};
  return {t->const_data_ptr<T>(), static_cast<std::size_t>(t->numel())};
}

OptionalTensor checked_values(const OptionalTensor& t, std::int64_t size, const char* name,
                              torch::ScalarType type) {
  if (!t) return t;
  const Tensor values = checked_array(*t, name, type);
  TORCH_CHECK_VALUE(values.numel() == size, name, " has ", values.numel(),
                    " numbers, but must have ", size);
  return values;
}

void check_rows(std::span<const std::uint64_t> rowptr, std::span<const std::uint64_t> col) {
  require<UsageError>(!rowptr.empty() && rowptr[0] == 0, "rowptr must begin with 0");
  const std::size_t row = first_where(rowptr.size() - 1, kSampleGrain, [&](std::size_t i) {
    return rowptr[i + 1] < rowptr[i] || rowptr[i + 1] > col.size();
  });
  if (row + 1 < rowptr.size())
    throw UsageError(fmt::format("rowptr[{}] is {}, outside {}..{}", row + 1,
                                 static_cast<std::int64_t>(rowptr[row + 1]), rowptr[row],
                                 col.size()));
  require<UsageError>(rowptr.back() == col.size(), "rowptr ends with {}, but col has {} numbers",
                      rowptr.back(), col.size());
  const std::size_t bad = first_where(col.size(), kSampleGrain,
                                      [&](std::size_t e) { return col[e] >= rowptr.size() - 1; });
  if (bad < col.size())
    throw UsageError(fmt::format("col[{}] is {}, which is none of the {} nodes", bad,
                                 static_cast<std::int64_t>(col[bad]), rowptr.size() - 1));
}

// Returns a tensor that is not initialised. The memory is on huge pages if it is large, which
// libtorch's own is not: its first use costs a third.
Tensor raw_tensor(std::uint64_t size) {
  auto* const memory = new RawVector<std::int64_t>(size);
  return torch::from_blob(
      memory->data(), {static_cast<std::int64_t>(size)}, [memory](void*) { delete memory; },
      torch::kInt64);
}

template <class T>
Tensor tensor_of(std::span<const T> values) {
  Tensor tensor = raw_tensor(values.size());
  std::ranges::copy(values, tensor.mutable_data_ptr<std::int64_t>());
  return tensor;
}

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

// The arrays of a graph to sample, checked.
struct SampledGraph {
  Tensor rowptr, col;
  OptionalTensor weights, edge_times, vertex_times;

  AnyCsr csr() const { return Csr64{array_of(rowptr), array_of(col), {}}; }
  SampleValues values() const {
    return {span_of<float>(weights), span_of<std::int64_t>(edge_times),
            span_of<std::int64_t>(vertex_times)};
  }
};

class SamplerHandle : public torch::CustomClassHolder {
 public:
  SamplerHandle(SampledGraph graph, SampleSettings settings)
      : graph_(std::move(graph)), sampler_(graph_.csr(), std::move(settings), graph_.values()) {}

  PygSample sample(const Tensor& seeds, std::int64_t key, const OptionalTensor& times) {
    const Tensor ids = checked_array(seeds, "seeds", torch::kInt64);
    const OptionalTensor moments = checked_values(times, ids.numel(), "times", torch::kInt64);
    return with_python_errors([&] {
      const ThreadCount threads(thread_share());
      const auto workspace = workspaces_.borrow([&] { return sampler_.workspace(); });
      const Sample found = sampler_.sample(ids_of(ids), static_cast<std::uint64_t>(key), *workspace,
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
  SampledGraph graph{.rowptr = checked_array(rowptr, "rowptr", torch::kInt64),
                     .col = checked_array(col, "col", torch::kInt64)};
  const std::int64_t vertices = graph.rowptr.numel() - 1, edges = graph.col.numel();
  graph.weights = checked_values(weights, edges, "weights", torch::kFloat32);
  graph.edge_times = checked_values(edge_times, edges, "edge_times", torch::kInt64);
  graph.vertex_times = checked_values(vertex_times, vertices, "vertex_times", torch::kInt64);
  return with_python_errors([&] {
    const ThreadCount threads(thread_share());
    check_rows(ids_of(graph.rowptr), ids_of(graph.col));
    return c10::make_intrusive<SamplerHandle>(
        std::move(graph), SampleSettings{.fanouts = std::move(fanouts),
                                         .replace = replace,
                                         .disjoint = disjoint,
                                         .targets = all_targets ? Targets::all : Targets::newest,
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
