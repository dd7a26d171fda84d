#include "python/dataset_tensors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kRowGrain = std::size_t{1} << 12;

std::int64_t size_of(std::uint64_t size) { return static_cast<std::int64_t>(size); }

at::Tensor allocate(const std::vector<std::int64_t>& shape, at::ScalarType type, const char* what) {
  std::uint64_t bytes = c10::elementSize(type);
  for (const std::int64_t n : shape) bytes *= static_cast<std::uint64_t>(n);
  require_memory(bytes, what);
  return at::empty(shape, type);
}

template <class To, class From>
at::Tensor converted(const Array<From>& values, at::ScalarType type, const char* what) {
  at::Tensor tensor = allocate({size_of(values.size())}, type, what);
  std::transform(values.begin(), values.end(), tensor.mutable_data_ptr<To>(),
                 [](From value) { return static_cast<To>(value); });
  return tensor;
}

at::Tensor edge_index_of(const AnyCsr& any) {
  at::Tensor index = allocate({2, size_of(edge_count(any))}, at::kLong, "edge_index");
  std::visit(
      [&](const auto& graph) {
        auto* const source = index.mutable_data_ptr<std::int64_t>();
        auto* const target = source + graph.edges();
        parallel_blocks(graph.vertices(), kRowGrain, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i)
            for (EdgeOffset e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e) {
              source[e] = static_cast<std::int64_t>(graph.neighbours[e]);
              target[e] = static_cast<std::int64_t>(i);
            }
        });
      },
      any);
  return index;
}

void fill_sparse(const Csr32& rows, std::uint64_t width, float* out) {
  std::fill_n(out, rows.vertices() * width, 0.0f);
  for (std::uint64_t i = 0; i < rows.vertices(); ++i)
    for (EdgeOffset e = rows.offsets[i]; e < rows.offsets[i + 1]; ++e)
      out[i * width + rows.neighbours[e]] += rows.weight(e);
}

at::Tensor dense(const Features& features) {
  at::Tensor x =
      allocate({size_of(features.rows), size_of(features.width)}, at::kFloat, "dense features x");
  auto* const out = x.mutable_data_ptr<float>();
  if (features.is_sparse())
    fill_sparse(features.sparse, features.width, out);
  else if (!features.bf16.empty())
    std::ranges::transform(features.bf16, out, [](BFloat16 value) { return to_float(value); });
  else
    std::ranges::copy(features.f32, out);
  return x;
}

at::Tensor mask_of(const Dataset& dataset, Split split) {
  std::vector<std::int64_t> shape{size_of(dataset.examples())};
  if (dataset.split_count > 1) shape.insert(shape.begin(), dataset.split_count);
  at::Tensor mask = allocate(shape, at::kBool, "split masks");
  std::ranges::transform(dataset.splits, mask.mutable_data_ptr<bool>(),
                         [split](Split s) { return s == split; });
  return mask;
}

}  // namespace

c10::Dict<std::string, at::Tensor> tensors_of(const Dataset& dataset) {
  c10::Dict<std::string, at::Tensor> tensors = small_tensors_of(dataset);
  tensors.insert("edge_index", edge_index_of(dataset.graph));
  if (!dataset.features.empty()) tensors.insert("x", dense(dataset.features));
  return tensors;
}

c10::Dict<std::string, at::Tensor> small_tensors_of(const Dataset& dataset) {
  c10::Dict<std::string, at::Tensor> tensors;
  tensors.insert("num_nodes", at::scalar_tensor(size_of(dataset.vertices()), at::kLong));
  std::visit(
      [&](const auto& graph) {
        if (graph.weighted())
          tensors.insert("edge_weight", converted<float>(graph.weights, at::kFloat, "edge_weight"));
      },
      dataset.graph);
  if (!dataset.labels.empty())
    tensors.insert("y", converted<std::int64_t>(dataset.labels, at::kLong, "labels y"));
  if (!dataset.label_sets.empty())
    tensors.insert("y", converted<std::int64_t>(dataset.label_sets, at::kLong, "label sets y")
                            .view({size_of(dataset.vertices()), dataset.classes}));
  if (dataset.is_set_of_graphs())
    tensors.insert("graph_id", converted<std::int64_t>(dataset.graph_ids, at::kLong, "graph_id"));
  if (!dataset.splits.empty())
    for (const auto& [name, split] : {std::pair{"train_mask", Split::train},
                                      {"val_mask", Split::validation},
                                      {"test_mask", Split::test}})
      tensors.insert(name, mask_of(dataset, split));
  if (!dataset.original_ids.empty())
    tensors.insert("original_ids",
                   converted<std::int64_t>(dataset.original_ids, at::kLong, "original_ids"));
  return tensors;
}

EdgesByTarget edges_by_target(const AnyCsr& any) {
  return std::visit(
      [](const auto& graph) {
        return EdgesByTarget{
            converted<std::int64_t>(graph.neighbours, at::kLong, "sources of edges"),
            converted<std::int64_t>(graph.offsets, at::kLong, "offsets of edges")};
      },
      any);
}

}  // namespace plait
