#include "plait/graph/renumber.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/row_grain.h"

namespace plait {
namespace {

template <class Body>
void each_place(std::size_t count, Body body) {
  parallel_blocks(count, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) body(i);
  });
}

// Returns the rows of `width` elements with row order[i] as row i; nothing if there is nothing.
template <class T>
Array<T> rows_in_order(const Array<T>& rows, std::uint64_t width,
                       std::span<const std::uint64_t> order) {
  if (rows.empty()) return {};
  Buffer<T> result(rows.size());
  each_place(order.size(), [&](std::size_t i) {
    std::copy_n(rows.data() + order[i] * width, width, result.data() + i * width);
  });
  return result;
}

template <VertexId V>
Buffer<EdgeOffset> offsets_in_order(const Csr<V>& graph, std::span<const std::uint64_t> order) {
  Buffer<EdgeOffset> offsets(order.size() + 1);
  offsets[0] = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    offsets[i + 1] = offsets[i] + graph.degree(order[i]);
  return offsets;
}

// Sorts a row's neighbours. Weights go with them; parallel edges keep the order given.
template <VertexId V>
void sort_row(std::span<V> neighbours, std::span<float> weights,
              std::vector<std::pair<V, float>>& both) {
  if (weights.empty()) {
    std::ranges::sort(neighbours);
    return;
  }
  both.clear();
  for (std::size_t k = 0; k < neighbours.size(); ++k) both.emplace_back(neighbours[k], weights[k]);
  std::ranges::stable_sort(both, {}, &std::pair<V, float>::first);
  for (std::size_t k = 0; k < neighbours.size(); ++k) std::tie(neighbours[k], weights[k]) = both[k];
}

// Returns the graph with row order[i] as row i, and each neighbour n as place_of(n).
template <VertexId V, class Place>
Csr<V> rows_of_csr(const Csr<V>& graph, std::span<const std::uint64_t> order, Place place_of,
                   bool sorted) {
  Buffer<EdgeOffset> offsets = offsets_in_order(graph, order);
  Buffer<V> neighbours(graph.edges());
  Buffer<float> weights(graph.weights.size());
  parallel_blocks(order.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    std::vector<std::pair<V, float>> both;
    for (std::size_t i = begin; i < end; ++i) {
      const EdgeOffset from = graph.offsets[order[i]], to = offsets[i];
      const EdgeOffset degree = offsets[i + 1] - to;
      for (EdgeOffset k = 0; k < degree; ++k)
        neighbours[to + k] = static_cast<V>(place_of(graph.neighbours[from + k]));
      if (graph.weighted()) std::copy_n(graph.weights.data() + from, degree, weights.data() + to);
      if (sorted)
        sort_row(neighbours.span().subspan(to, degree),
                 weights.empty() ? std::span<float>() : weights.span().subspan(to, degree), both);
    }
  });
  return {std::move(offsets), std::move(neighbours), std::move(weights)};
}

AnyCsr renumbered(const AnyCsr& any, std::span<const std::uint64_t> order,
                  std::span<const std::uint64_t> place) {
  return std::visit(
      [&](const auto& graph) -> AnyCsr {
        return rows_of_csr(
            graph, order, [&](std::uint64_t v) { return place[v]; }, true);
      },
      any);
}

// Labels and splits of vertices; graphs of a set keep theirs.
void put_examples_in_order(Dataset& dataset, std::span<const std::uint64_t> order) {
  if (dataset.is_set_of_graphs()) return;
  dataset.labels = rows_in_order(dataset.labels, 1, order);
  dataset.label_sets =
      rows_in_order(dataset.label_sets, static_cast<std::uint64_t>(dataset.classes), order);
  if (dataset.splits.empty()) return;
  Buffer<Split> splits(dataset.splits.size());
  for (std::uint64_t s = 0; s < dataset.split_count; ++s)
    each_place(order.size(), [&](std::size_t i) {
      splits[s * order.size() + i] = dataset.splits[s * order.size() + order[i]];
    });
  dataset.splits = std::move(splits);
}

Array<std::uint64_t> numbers_of(const Dataset& dataset, std::span<const std::uint64_t> order) {
  Buffer<std::uint64_t> numbers(order.size());
  each_place(order.size(), [&](std::size_t i) { numbers[i] = dataset.number(order[i]); });
  const bool same = first_where(numbers.size(), kRowGrain,
                                [&](std::size_t i) { return numbers[i] != i; }) == numbers.size();
  if (same) return {};
  return numbers;
}

// The bytes of a renumbered copy: of all arrays of the graph, the features and the numbers.
std::uint64_t bytes_of_copy(const Dataset& dataset) {
  const auto bytes = [](const auto& array) { return array.span().size_bytes(); };
  const auto of_csr = [&](const auto& csr) {
    return bytes(csr.offsets) + bytes(csr.neighbours) + bytes(csr.weights);
  };
  return std::visit(of_csr, dataset.graph) + of_csr(dataset.features.sparse) +
         bytes(dataset.features.f32) + bytes(dataset.features.bf16) + bytes(dataset.label_sets) +
         bytes(dataset.splits) + 3 * sizeof(std::uint64_t) * dataset.vertices();
}

}  // namespace

std::uint64_t first_no_permutation(std::span<const std::uint64_t> order) {
  constexpr std::uint64_t kBits = 64;
  std::vector<std::uint64_t> seen((order.size() + kBits - 1) / kBits);
  std::uint64_t place = 0;
  for (; place < order.size(); ++place) {
    if (order[place] >= order.size()) break;
    std::uint64_t& word = seen[order[place] / kBits];
    const std::uint64_t bit = std::uint64_t{1} << order[place] % kBits;
    if (word & bit) break;
    word |= bit;
  }
  return place;
}

Buffer<std::uint64_t> inverse_of(std::span<const std::uint64_t> order) {
  Buffer<std::uint64_t> place(order.size());
  each_place(order.size(), [&](std::size_t i) { place[order[i]] = i; });
  return place;
}

Features in_order(const Features& features, std::span<const std::uint64_t> order) {
  Features result = features;
  result.f32 = rows_in_order(features.f32, features.width, order);
  result.bf16 = rows_in_order(features.bf16, features.width, order);
  const auto same = [](std::uint64_t column) { return column; };
  if (features.is_sparse()) result.sparse = rows_of_csr(features.sparse, order, same, false);
  return result;
}

void require_memory_to_renumber(const Dataset& dataset, std::uint64_t copies) {
  require_memory(copies * bytes_of_copy(dataset), "the renumbered graph");
}

Dataset renumbered(const Dataset& dataset, std::span<const std::uint64_t> order) {
  const Timed timed("renumber");
  require(order.size() == dataset.vertices(), "an order of {} vertices was given for {}",
          order.size(), dataset.vertices());
  const std::uint64_t wrong = first_no_permutation(order);
  require(wrong == order.size(), "the order is no permutation: place {} has vertex {}", wrong,
          wrong < order.size() ? order[wrong] : 0);
  require_memory_to_renumber(dataset, 1);
  Dataset result = dataset;
  result.checked.clear();  // they tell of the arrays before
  result.graph = renumbered(dataset.graph, order, inverse_of(order).span());
  if (!dataset.features.empty()) result.features = in_order(dataset.features, order);
  put_examples_in_order(result, order);
  result.graph_ids = rows_in_order(dataset.graph_ids, 1, order);
  result.original_ids = rows_in_order(dataset.original_ids, 1, order);
  result.numbers = numbers_of(dataset, order);
  return result;
}

Dataset with_first_numbers(const Dataset& dataset) {
  if (dataset.numbers.empty()) return dataset;
  return renumbered(dataset, inverse_of(dataset.numbers).span());
}

Buffer<std::uint64_t> vertices_by_number(const Dataset& dataset) {
  return inverse_of(dataset.numbers);
}

Array<std::int64_t> vertex_values_in_order(const Dataset& dataset, Array<std::int64_t> values) {
  require(values.size() == dataset.vertices(), "there are {} values for {} vertices", values.size(),
          dataset.vertices());
  if (dataset.numbers.empty()) return values;
  return rows_in_order(values, 1, dataset.numbers);
}

Array<std::int64_t> edge_values_in_order(const Dataset& dataset, Array<std::int64_t> values) {
  require(values.size() == dataset.edges(), "there are {} values for {} edges", values.size(),
          dataset.edges());
  if (dataset.numbers.empty()) return values;
  require_memory(values.size() * sizeof(std::int64_t), "values of edges in the graph's order");
  const Buffer<std::uint64_t> rows = vertices_by_number(dataset);
  Buffer<std::int64_t> result(values.size());
  std::visit(
      [&](const auto& csr) {
        const Buffer<EdgeOffset> before = offsets_in_order(csr, rows.span());
        parallel_blocks(rows.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
          std::vector<std::pair<std::uint64_t, EdgeOffset>> row;  // number of the source, and place
          for (std::size_t n = begin; n < end; ++n) {
            row.clear();
            for (EdgeOffset e = csr.offsets[rows[n]]; e < csr.offsets[rows[n] + 1]; ++e)
              row.emplace_back(dataset.numbers[csr.neighbours[e]], e);
            std::ranges::sort(row);
            for (std::size_t k = 0; k < row.size(); ++k)
              result[row[k].second] = values[before[n] + k];
          }
        });
      },
      dataset.graph);
  return result;
}

}  // namespace plait
