#include "python/edge_tensors.h"

#include <c10/core/GradMode.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "plait/base/error.h"
#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kGrain = std::size_t{1} << 18;

std::string type_name(const at::Tensor& tensor) { return at::toString(tensor.scalar_type()); }

void check_place(const at::Tensor& tensor, const char* name) {
  require<UsageError>(tensor.device().is_cpu() || tensor.device().is_cuda(),
                      "{} is on {}; move it to the CPU with .cpu()", name, tensor.device().str());
  require<UsageError>(tensor.layout() == at::kStrided,
                      "{} is a sparse tensor; pass the edges as a dense 2 x E tensor", name);
}

template <class T>
std::span<const T> values_of(const at::Tensor& contiguous) {
  return {contiguous.const_data_ptr<T>(), static_cast<std::size_t>(contiguous.numel())};
}

void check_ids(std::span<const std::int64_t> ids, std::int64_t vertices) {
  const std::size_t bad = first_where(ids.size(), kGrain, [&](std::size_t i) {
    return static_cast<std::uint64_t>(ids[i]) >= static_cast<std::uint64_t>(vertices);
  });
  if (bad == ids.size()) return;
  const std::size_t edges = ids.size() / 2;
  const std::int64_t id = ids[bad];
  const std::string allowed =
      vertices > 0 ? fmt::format("outside 0..{}", vertices - 1) : "an id where there are no nodes";
  const std::string remedy = id < 0 ? "correct it"
                                    : fmt::format("correct it, or raise num_nodes to {}",
                                                  static_cast<std::uint64_t>(id) + 1);
  throw UsageError(fmt::format("edge_index[{}, {}] is {}, {}; {}", bad / edges, bad % edges, id,
                               allowed, remedy));
}

void check_weight(const at::Tensor& weight, std::int64_t edges) {
  check_place(weight, "edge_weight");
  require<UsageError>(weight.scalar_type() == at::kFloat,
                      "edge_weight holds {}; only float32 is supported yet, use .float()",
                      type_name(weight));
  require<UsageError>(weight.dim() == 1 && weight.size(0) == edges,
                      "edge_weight has shape ({}), but edge_index has {} edges; give one weight "
                      "for each",
                      fmt::join(weight.sizes(), ", "), edges);
  require<UsageError>(!(weight.requires_grad() && c10::GradMode::is_enabled()),
                      "gradients for edge_weight are not supported yet; pass "
                      "edge_weight.detach()");
  if (weight.is_cuda() && at::isfinite(weight).all().item<bool>()) return;
  const at::Tensor contiguous = weight.cpu().contiguous();
  const auto values = values_of<float>(contiguous);
  const std::size_t bad =
      first_where(values.size(), kGrain, [&](std::size_t i) { return !std::isfinite(values[i]); });
  if (bad < values.size())
    throw UsageError(
        fmt::format("edge_weight[{}] is {}; weights must be finite", bad, values[bad]));
}

// Tells whether all ids are in range, found out on the GPU.
bool all_in_range(const at::Tensor& ids, std::int64_t vertices) {
  if (ids.numel() == 0) return true;
  const auto [least, most] = ids.aminmax();
  return least.item<std::int64_t>() >= 0 && most.item<std::int64_t>() < vertices;
}

// Returns contiguous int64, on the GPU if the edges are there. The CPU reports wrong ids.
at::Tensor checked_index(const EdgeTensors& edges) {
  const at::Tensor& index = edges.index;
  check_place(index, "edge_index");
  require<UsageError>(at::isIntegralType(index.scalar_type(), false),
                      "edge_index holds {}; use integers (torch.long)", type_name(index));
  require<UsageError>(index.dim() == 2 && index.size(0) == 2,
                      "edge_index has shape ({}), but must have (2, edges): sources, then targets",
                      fmt::join(index.sizes(), ", "));
  require<UsageError>(edges.vertices >= 0, "num_nodes is {}; use 0 or more", edges.vertices);
  at::Tensor ids = index.to(at::kLong).contiguous();
  if (!ids.is_cuda() || !all_in_range(ids, edges.vertices)) {
    ids = ids.cpu();
    check_ids(values_of<std::int64_t>(ids), edges.vertices);
  }
  if (edges.weight) check_weight(*edges.weight, index.size(1));
  return ids;
}

// Returns row `row` of ids as V; signed numbers of the same size have the same bits. Ids on a GPU
// are converted there, so that fewer bytes come from it.
template <VertexId V>
Buffer<V> column_of(const at::Tensor& ids, std::int64_t row) {
  const at::Tensor from = ids[row];
  Buffer<V> column(static_cast<std::size_t>(from.numel()));
  if (from.is_cuda()) {
    constexpr auto kType = sizeof(V) == sizeof(std::int32_t) ? at::kInt : at::kLong;
    at::from_blob(column.data(), from.sizes(), at::dtype(kType)).copy_(from.to(kType));
    return column;
  }
  const auto values = values_of<std::int64_t>(from);
  parallel_blocks(values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t e = begin; e < end; ++e) column[e] = static_cast<V>(values[e]);
  });
  return column;
}

template <VertexId V>
EdgeList<V> fill(const at::Tensor& ids, const EdgeTensors& tensors) {
  EdgeList<V> list;
  list.vertices = static_cast<std::uint64_t>(tensors.vertices);
  list.source = column_of<V>(ids, 0);
  list.target = column_of<V>(ids, 1);
  const std::size_t edges = list.source.size();
  if (tensors.weight) {
    const at::Tensor weight = tensors.weight->cpu().contiguous();
    list.weight = Buffer<float>(edges);
    std::ranges::copy(values_of<float>(weight), list.weight.begin());
  }
  return list;
}

}  // namespace

void check_edges(const EdgeTensors& edges) { checked_index(edges); }

// A search for each row: PyTorch's own conversion has one thread write all rows behind the last
// edge, which most rows of a trimmed batch are.
at::Tensor offsets_of(const at::Tensor& sorted, std::int64_t rows) {
  return at::searchsorted(sorted.contiguous(), at::arange(rows + 1, sorted.options()));
}

AnyEdgeList edge_list_of(const EdgeTensors& edges) {
  const at::Tensor ids = checked_index(edges);
  if (static_cast<std::uint64_t>(edges.vertices) <= kMaxVertices32)
    return fill<std::uint32_t>(ids, edges);
  return fill<std::uint64_t>(ids, edges);
}

}  // namespace plait
