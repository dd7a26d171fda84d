#include "plait/placement/own_rows.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>

#include "plait/base/parallel.h"
#include "plait/base/row_grain.h"

namespace plait {
namespace {

// A CSR whose row r has size(r) entries, written by fill(r, first position).
template <VertexId V, class Size, class Fill>
Csr<V> make_rows(std::uint64_t rows, bool weighted, Size size, Fill fill) {
  Buffer<EdgeOffset> offsets(rows + 1);
  offsets[0] = 0;
  parallel_blocks(rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) offsets[r + 1] = size(r);
  });
  std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
  Buffer<V> neighbours(offsets[rows]);
  Buffer<float> weights(weighted ? offsets[rows] : 0);
  parallel_blocks(rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r)
      fill(r, neighbours.data() + offsets[r], weighted ? weights.data() + offsets[r] : nullptr);
  });
  return {std::move(offsets), std::move(neighbours), std::move(weights)};
}

// Returns the graph's rows of vertex(0), vertex(1), ...
template <VertexId V, class Vertex>
Csr<V> chosen_rows(const Csr<V>& graph, std::uint64_t rows, Vertex vertex) {
  return make_rows<V>(
      rows, graph.weighted(), [&](std::uint64_t r) { return graph.degree(vertex(r)); },
      [&](std::uint64_t r, V* neighbours, float* weights) {
        const std::uint64_t v = vertex(r);
        std::ranges::copy(graph.row(v), neighbours);
        if (weights != nullptr)
          std::copy_n(graph.weights.data() + graph.offsets[v], graph.degree(v), weights);
      });
}

template <VertexId V>
constexpr V kNoRow = std::numeric_limits<V>::max();

// Returns the `rows` rows of the transposed graph that have a number: row_of(v) is the row of
// vertex v, or kNoRow. A counting sort, by one thread.
template <VertexId V, class RowOf>
Csr<V> columns(const Csr<V>& graph, std::uint64_t rows, RowOf row_of) {
  const auto each_edge = [&](auto&& take) {
    for (std::uint64_t i = 0; i < graph.vertices(); ++i)
      for (EdgeOffset e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e)
        if (const V row = row_of(graph.neighbours[e]); row != kNoRow<V>)
          take(row, static_cast<V>(i), e);
  };
  Buffer<EdgeOffset> offsets(rows + 1, 0);
  each_edge([&](V row, V, EdgeOffset) { ++offsets[row + std::uint64_t{1}]; });
  std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());
  Buffer<V> neighbours(offsets[rows]);
  Buffer<float> weights(graph.weighted() ? offsets[rows] : 0);
  Buffer<EdgeOffset> cursor(rows);
  std::copy_n(offsets.begin(), rows, cursor.begin());
  each_edge([&](V row, V target, EdgeOffset e) {
    const EdgeOffset at = cursor[row]++;
    if (graph.weighted()) weights[at] = graph.weights[e];
    neighbours[at] = target;
  });
  return {std::move(offsets), std::move(neighbours), std::move(weights)};
}

}  // namespace

template <VertexId V>
Csr<V> own_rows(const Csr<V>& graph, const Partition& partition, int rank) {
  if (partition.is_whole() && !graph.offsets.empty()) return graph;
  return chosen_rows(graph, partition.size(rank),
                     [&](std::uint64_t r) { return partition.vertex(rank, r); });
}

template <VertexId V>
Csr<V> rows_of(const Csr<V>& graph, std::span<const std::uint64_t> vertices) {
  return chosen_rows(graph, vertices.size(), [&](std::uint64_t r) { return vertices[r]; });
}

template <VertexId V>
Csr<V> own_columns(const Csr<V>& graph, const Partition& partition, int rank) {
  if (partition.is_whole()) return columns(graph, graph.vertices(), [](V v) { return v; });
  return columns(graph, partition.size(rank), [&](V v) {
    return partition.owner(v) == rank ? static_cast<V>(partition.row(v)) : kNoRow<V>;
  });
}

template <VertexId V>
Csr<V> sorted_by_number(const Csr<V>& rows, const Partition& partition) {
  const auto number = [&](V v) { return partition.numbers().empty() ? v : partition.numbers()[v]; };
  std::atomic<bool> in_order{true};
  parallel_blocks(rows.vertices(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end && in_order; ++r)
      if (!std::ranges::is_sorted(rows.row(r), {}, number)) in_order = false;
  });
  if (in_order) return rows;
  return make_rows<V>(
      rows.vertices(), rows.weighted(), [&](std::uint64_t r) { return rows.degree(r); },
      [&](std::uint64_t r, V* neighbours, float* weights) {
        std::vector<EdgeOffset> order(rows.degree(r));
        std::iota(order.begin(), order.end(), rows.offsets[r]);
        std::ranges::stable_sort(order, {},
                                 [&](EdgeOffset e) { return number(rows.neighbours[e]); });
        for (std::size_t k = 0; k < order.size(); ++k) {
          neighbours[k] = rows.neighbours[order[k]];
          if (weights != nullptr) weights[k] = rows.weights[order[k]];
        }
      });
}

template <VertexId V>
Csr<V> rows_joined(const Csr<V>& first, const Csr<V>& second) {
  return make_rows<V>(
      first.vertices(),
      first.weighted() || second.weighted(),  // rows without any edge have no weights
      [&](std::uint64_t r) { return first.degree(r) + second.degree(r); },
      [&](std::uint64_t r, V* neighbours, float* weights) {
        for (const Csr<V>* from : {&first, &second}) {
          neighbours = std::ranges::copy(from->row(r), neighbours).out;
          if (weights != nullptr)
            weights =
                std::copy_n(from->weights.data() + from->offsets[r], from->degree(r), weights);
        }
      });
}

template <VertexId V>
Csr<V> with_one_loop_each(const Csr<V>& rows, const Partition& partition, int rank,
                          float loop_weight) {
  const auto self = [&](std::uint64_t r) { return static_cast<V>(partition.vertex(rank, r)); };
  return make_rows<V>(
      rows.vertices(), rows.weighted(),
      [&](std::uint64_t r) {
        const auto row = rows.row(r);
        return row.size() - static_cast<std::size_t>(std::ranges::count(row, self(r))) + 1;
      },
      [&](std::uint64_t r, V* neighbours, float* weights) {
        float own_weight = loop_weight;
        std::size_t loop_at = 0, out = 0;
        const EdgeOffset first = rows.offsets[r];
        const auto put = [&](std::size_t at, V id, float weight) {
          neighbours[at] = id;
          if (weights != nullptr) weights[at] = weight;
        };
        bool placed = false;
        for (EdgeOffset e = first; e < rows.offsets[r + 1]; ++e) {
          const V j = rows.neighbours[e];
          if (!placed && j >= self(r)) {
            loop_at = out++;
            placed = true;
          }
          if (j == self(r))
            own_weight = rows.weight(e);
          else
            put(out++, j, rows.weight(e));
        }
        if (!placed) loop_at = out;
        put(loop_at, self(r), own_weight);
      });
}

template <VertexId V>
std::vector<float> row_sums(const Csr<V>& rows) {
  std::vector<float> sums(rows.vertices());
  parallel_blocks(rows.vertices(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      double sum = rows.weighted() ? 0 : static_cast<double>(rows.degree(i));
      if (rows.weighted())
        for (EdgeOffset e = rows.offsets[i]; e < rows.offsets[i + 1]; ++e) sum += rows.weights[e];
      sums[i] = static_cast<float>(sum);
    }
  });
  return sums;
}

std::vector<std::uint64_t> place_starts(const Partition& partition) {
  std::vector<std::uint64_t> starts{0};
  for (int p = 0; p < partition.parts(); ++p) starts.push_back(starts.back() + partition.size(p));
  return starts;
}

template <VertexId V>
Csr<V> by_place(const Csr<V>& rows, const Partition& partition, bool sorted) {
  std::atomic<bool> in_order{partition.is_contiguous()};
  if (in_order && sorted)
    parallel_blocks(rows.vertices(), kRowGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t r = begin; r < end && in_order; ++r)
        if (!std::ranges::is_sorted(rows.row(r))) in_order = false;
    });
  if (in_order) return rows;
  const std::vector<std::uint64_t> starts = place_starts(partition);
  return make_rows<V>(
      rows.vertices(), rows.weighted(), [&](std::uint64_t r) { return rows.degree(r); },
      [&](std::uint64_t r, V* neighbours, float* weights) {
        std::vector<std::pair<V, float>> row;
        for (EdgeOffset e = rows.offsets[r]; e < rows.offsets[r + 1]; ++e) {
          const std::uint64_t v = rows.neighbours[e];
          const auto owner = static_cast<std::size_t>(partition.owner(v));
          row.emplace_back(static_cast<V>(starts[owner] + partition.row(v)), rows.weight(e));
        }
        if (sorted) std::ranges::stable_sort(row, {}, &std::pair<V, float>::first);
        for (std::size_t k = 0; k < row.size(); ++k) {
          neighbours[k] = row[k].first;
          if (weights != nullptr) weights[k] = row[k].second;
        }
      });
}

template std::vector<float> row_sums(const Csr32&);
template std::vector<float> row_sums(const Csr64&);
template Csr32 by_place(const Csr32&, const Partition&, bool);
template Csr64 by_place(const Csr64&, const Partition&, bool);
template Csr32 own_rows(const Csr32&, const Partition&, int);
template Csr64 own_rows(const Csr64&, const Partition&, int);
template Csr32 rows_of(const Csr32&, std::span<const std::uint64_t>);
template Csr64 rows_of(const Csr64&, std::span<const std::uint64_t>);
template Csr32 own_columns(const Csr32&, const Partition&, int);
template Csr64 own_columns(const Csr64&, const Partition&, int);
template Csr32 sorted_by_number(const Csr32&, const Partition&);
template Csr64 sorted_by_number(const Csr64&, const Partition&);
template Csr32 rows_joined(const Csr32&, const Csr32&);
template Csr64 rows_joined(const Csr64&, const Csr64&);
template Csr32 with_one_loop_each(const Csr32&, const Partition&, int, float);
template Csr64 with_one_loop_each(const Csr64&, const Partition&, int, float);

}  // namespace plait
