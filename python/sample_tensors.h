// Tensors of graphs that are sampled, and of samples.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>

#include "plait/graph/csr.h"
#include "python/edge_tensors.h"
#include "python/operations.h"

namespace plait {

// Return the tensor, contiguous. Throw ValueError in Python unless it is on the device, has one
// dimension and holds numbers of the type.
torch::Tensor checked_array(const torch::Tensor& t, const char* name, torch::ScalarType type,
                            const torch::Device& device = torch::kCPU);
// Does the same for ids, whose type is int64 or int32.
torch::Tensor checked_ids(const torch::Tensor& t, const char* name, const torch::Device& device);
// Does the same for values, if there are any. There must be `size` values.
OptionalTensor checked_values(const OptionalTensor& t, std::int64_t size, const char* name,
                              torch::ScalarType type, const torch::Device& device = torch::kCPU);

// Returns the number. Throws ValueError in Python if it is below 0.
inline std::uint64_t checked_count(std::int64_t value, const char* name) {
  TORCH_CHECK_VALUE(value >= 0, name, " is ", value, "; it must be at least 0");
  return static_cast<std::uint64_t>(value);
}

// Returns the graph whose row v is col[rowptr[v] .. rowptr[v + 1] - 1]. The graph keeps the tensors
// alive. Throws UsageError unless they are the rows of a graph. They are checked arrays on the CPU,
// of int64 and of ids.
AnyCsr checked_csr(const torch::Tensor& rowptr, const torch::Tensor& col);

// Returns the graph whose row v lists the targets of the edges from v, in ascending order. Throws
// as edge_list_of(), and UsageError for weights below 0.
AnyCsr rows_by_source(const EdgeTensors& edges);

// Returns a tensor that is not initialised. The memory is on huge pages if it is large, which
// libtorch's own is not: its first use costs a third.
torch::Tensor raw_tensor(std::uint64_t size);

// A view of numbers that are not negative; signed numbers of the same size have the same bits.
template <class Id = std::uint64_t>
std::span<const Id> ids_in(const torch::Tensor& t) {
  return {reinterpret_cast<const Id*>(t.const_data_ptr<std::make_signed_t<Id>>()),
          static_cast<std::size_t>(t.numel())};
}

template <class T>
std::span<const T> span_of(const OptionalTensor& t) {
  if (!t) return {};
  return {t->const_data_ptr<T>(), static_cast<std::size_t>(t->numel())};
}

template <class T>
torch::Tensor tensor_of(std::span<const T> values) {
  torch::Tensor tensor = raw_tensor(values.size());
  std::ranges::copy(values, tensor.mutable_data_ptr<std::int64_t>());
  return tensor;
}

}  // namespace plait
