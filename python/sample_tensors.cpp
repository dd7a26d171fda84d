#include "python/sample_tensors.h"

#include "plait/base/parallel.h"
#include "plait/base/raw_vector.h"
#include "plait/graph/build.h"

namespace plait {

using torch::Tensor;

namespace {

void check_array(const Tensor& t, const char* name, const torch::Device& device) {
  if (device.is_cpu())
    TORCH_CHECK_VALUE(t.device().is_cpu(), name, " is on ", t.device(), "; use .cpu()");
  TORCH_CHECK_VALUE(t.device() == device, name, " is on ", t.device(), "; the graph is on ", device,
                    ", and both must be on one device");
  TORCH_CHECK_VALUE(t.layout() == torch::kStrided, name, " is sparse; use .to_dense()");
  TORCH_CHECK_VALUE(t.dim() == 1, name, " has shape ", t.sizes(), ", but must have one dimension");
}

}  // namespace

Tensor checked_array(const Tensor& t, const char* name, torch::ScalarType type,
                     const torch::Device& device) {
  check_array(t, name, device);
  TORCH_CHECK_VALUE(t.scalar_type() == type, name, " holds ", t.scalar_type(), "; use ", type);
  return t.contiguous();
}

Tensor checked_ids(const Tensor& t, const char* name, const torch::Device& device) {
  check_array(t, name, device);
  TORCH_CHECK_VALUE(t.scalar_type() == torch::kInt64 || t.scalar_type() == torch::kInt32, name,
                    " holds ", t.scalar_type(), "; use Long or Int");
  return t.contiguous();
}

OptionalTensor checked_values(const OptionalTensor& t, std::int64_t size, const char* name,
                              torch::ScalarType type, const torch::Device& device) {
  if (!t) return t;
  const Tensor values = checked_array(*t, name, type, device);
  TORCH_CHECK_VALUE(values.numel() == size, name, " has ", values.numel(),
                    " numbers, but must have ", size);
  return values;
}

namespace {

constexpr std::size_t kSampleGrain = std::size_t{1} << 16;

template <VertexId V>
void check_rows(std::span<const std::uint64_t> rowptr, std::span<const V> col) {
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
                                 static_cast<std::make_signed_t<V>>(col[bad]), rowptr.size() - 1));
}

template <VertexId V>
AnyCsr checked_csr_of(const Tensor& rowptr, const Tensor& col) {
  check_rows(ids_in(rowptr), ids_in<V>(col));
  const auto kept = [](const Tensor& t) { return std::make_shared<Tensor>(t); };
  return Csr<V>{{kept(rowptr), ids_in(rowptr)}, {kept(col), ids_in<V>(col)}, {}};
}

}  // namespace

AnyCsr checked_csr(const Tensor& rowptr, const Tensor& col) {
  if (col.scalar_type() == torch::kInt32) return checked_csr_of<std::uint32_t>(rowptr, col);
  return checked_csr_of<std::uint64_t>(rowptr, col);
}

AnyCsr rows_by_source(const EdgeTensors& edges) {
  AnyEdgeList list = edge_list_of(edges);
  std::visit(
      [](auto& e) {
        const std::size_t bad = first_where(e.weight.size(), kSampleGrain,
                                            [&](std::size_t i) { return e.weight[i] < 0; });
        if (bad < e.weight.size())
          throw UsageError(
              fmt::format("edge_weight[{}] is {}; weights must be at least 0", bad, e.weight[bad]));
        std::swap(e.source, e.target);
      },
      list);
  return build_csr(std::move(list));
}

Tensor raw_tensor(std::uint64_t size) {
  auto* const memory = new RawVector<std::int64_t>(size);
  return torch::from_blob(
      memory->data(), {static_cast<std::int64_t>(size)}, [memory](void*) { delete memory; },
      torch::kInt64);
}

}  // namespace plait
