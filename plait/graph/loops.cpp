#include "plait/graph/loops.h"

#include <algorithm>
#include <numeric>

#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/row_grain.h"

namespace plait {
namespace {

// Calls each(i) for all rows, by all threads.
template <class Each>
void for_rows(std::uint64_t rows, Each each) {
  parallel_blocks(rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) each(i);
  });
}

template <VertexId V>
Csr<V> without_loops(const Csr<V>& graph) {
  const std::uint64_t rows = graph.vertices();
  const auto loops = [&](std::uint64_t i) {
    return static_cast<EdgeOffset>(std::ranges::count(graph.row(i), static_cast<V>(i)));
  };
  Buffer<EdgeOffset> offsets(rows + 1);
  offsets[0] = 0;
  for_rows(rows, [&](std::uint64_t i) { offsets[i + 1] = graph.degree(i) - loops(i); });
  std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
  if (offsets[rows] == graph.edges()) return graph;
  Buffer<V> neighbours(offsets[rows]);
  Buffer<float> weights(graph.weighted() ? offsets[rows] : 0);
  for_rows(rows, [&](std::uint64_t i) {
    EdgeOffset at = offsets[i];
    for (EdgeOffset e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e) {
      if (graph.neighbours[e] == i) continue;
      if (graph.weighted()) weights[at] = graph.weights[e];
      neighbours[at++] = graph.neighbours[e];
    }
  });
  return {std::move(offsets), std::move(neighbours), std::move(weights)};
}

template <VertexId V>
Array<std::int64_t> values_of_others(const Csr<V>& graph, const Array<std::int64_t>& values) {
  require_memory(graph.edges() * sizeof(std::int64_t), "values of edges without loops");
  Buffer<std::int64_t> kept(graph.edges());
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < graph.vertices(); ++i)
    for (EdgeOffset e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e)
      if (graph.neighbours[e] != i) kept[count++] = values[e];
  if (count == values.size()) return values;
  kept.truncate(count);
  return kept;
}

template <VertexId V>
std::vector<float> loop_weights(const Csr<V>& graph) {
  if (!graph.weighted()) return {};
  std::vector<float> weights(graph.vertices(), 1);
  for_rows(graph.vertices(), [&](std::uint64_t i) {
    for (EdgeOffset e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e)
      if (graph.neighbours[e] == i) weights[i] = graph.weights[e];
  });
  const bool plain = std::ranges::count(weights, 1.0f) == std::ssize(weights);
  return plain ? std::vector<float>() : weights;
}

}  // namespace

AnyCsr without_loops(const AnyCsr& graph) {
  return std::visit([](const auto& csr) -> AnyCsr { return without_loops(csr); }, graph);
}

Array<std::int64_t> without_loops(const AnyCsr& graph, const Array<std::int64_t>& values) {
  if (values.empty()) return {};
  return std::visit([&](const auto& csr) { return values_of_others(csr, values); }, graph);
}

std::vector<float> loop_weights(const AnyCsr& graph) {
  return std::visit([](const auto& csr) { return loop_weights(csr); }, graph);
}

}  // namespace plait
