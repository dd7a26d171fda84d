#include "plait/placement/row_block.h"

#include <limits>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/placement/own_rows.h"

namespace plait {
namespace {

constexpr int kBlock = 1;  // of partition_of_block

// Rows are copied out of the graph, once more with their loops, and turned into slots.
template <VertexId V>
std::uint64_t bytes_an_edge(const Csr<V>& graph, const BlockCost& cost) {
  if (!cost.edges) return 0;
  const std::uint64_t copy = sizeof(V) + (graph.weighted() ? sizeof(float) : 0);
  return (cost.one_loop_each ? 2 : 1) * copy + sizeof(Slot);
}

// Returns how many vertices a row would add; parallel edges side by side count once.
template <VertexId V>
std::uint64_t count_fresh(const Csr<V>& graph, std::uint64_t row, bool loop,
                          const VertexSet& sources) {
  std::uint64_t fresh = loop && !sources.contains(row) ? 1 : 0;
  std::uint64_t previous = std::numeric_limits<std::uint64_t>::max();
  for (const V j : graph.row(row)) {
    if (j != previous && !sources.contains(j)) ++fresh;
    previous = j;
  }
  return fresh;
}

template <VertexId V>
BlockRange cut(const Csr<V>& graph, std::uint64_t begin, std::uint64_t last, const BlockCost& cost,
               VertexSet& sources) {
  const std::uint64_t per_edge = bytes_an_edge(graph, cost);
  const std::uint64_t per_row = cost.per_row + (cost.edges ? 3 * sizeof(EdgeOffset) : 0);
  const bool gathers = cost.edges && cost.per_source > 0;
  std::uint64_t edges = 0;
  const auto bytes = [&](std::uint64_t rows, std::uint64_t more_edges, std::uint64_t more_sources) {
    return rows * per_row + (edges + more_edges) * per_edge +
           (sources.size() + more_sources) * cost.per_source;
  };
  sources.clear();
  BlockRange range{begin, begin};
  for (; range.end < last; ++range.end) {
    const std::uint64_t v = range.end;
    const std::uint64_t degree = graph.degree(v) + (cost.one_loop_each ? 1 : 0);
    const std::uint64_t fresh = gathers ? count_fresh(graph, v, cost.one_loop_each, sources) : 0;
    if (bytes(v - begin + 1, degree, fresh) > cost.limit) break;
    edges += degree;
    if (!gathers) continue;
    for (const V j : graph.row(v)) sources.insert(j);
    if (cost.one_loop_each) sources.insert(v);
  }
  if (range.end == begin && begin < last) {
    const std::uint64_t alone = bytes(1, graph.degree(begin) + 1, 0);
    require<DoesNotFitError>(
        alone <= cost.limit && graph.vertices() - 1 <= std::numeric_limits<Slot>::max(),
        "{}: vertex {} with {} edges needs {}, but {} are left for it; give a higher limit",
        cost.what, cost.numbers.empty() ? begin : cost.numbers[begin], graph.degree(begin),
        format_bytes(alone), format_bytes(cost.limit));
    range = {begin, begin + 1, false};
  }
  if (gathers && range.gathered) sources.number();
  return range;
}

template <VertexId V>
Csr<V> rows_of(const Csr<V>& graph, const BlockRange& range, bool one_loop_each) {
  const Partition partition = partition_of_block(graph.vertices(), range.begin, range.end);
  Csr<V> rows = own_rows(graph, partition, kBlock);
  return one_loop_each ? with_one_loop_each(rows, partition, kBlock) : rows;
}

template <VertexId V>
RowBlock make(const Csr<V>& graph, const BlockRange& range, bool one_loop_each,
              VertexSet& sources) {
  const Csr<V> rows = rows_of(graph, range, one_loop_each);
  RowBlock block{.begin = range.begin,
                 .end = range.end,
                 .offsets = rows.offsets,
                 .weights = rows.weights,
                 .degree = row_sums(rows)};
  Buffer<Slot> slots(rows.edges());
  parallel_blocks(rows.edges(), std::size_t{1} << 14, [&](std::size_t begin, std::size_t end) {
    for (std::size_t e = begin; e < end; ++e)
      slots[e] =
          range.gathered ? sources.slot(rows.neighbours[e]) : static_cast<Slot>(rows.neighbours[e]);
  });
  block.slots = std::move(slots);
  if (range.gathered) {
    block.sources.reserve(sources.size());
    sources.each([&](std::uint64_t v) { block.sources.push_back(v); });
  }
  return block;
}

}  // namespace

Partition partition_of_block(std::uint64_t vertices, std::uint64_t begin, std::uint64_t end) {
  return Partition::contiguous({0, begin, end, vertices});
}

BlockRange cut_block(const AnyCsr& graph, std::uint64_t begin, std::uint64_t last,
                     const BlockCost& cost, VertexSet& sources) {
  return std::visit([&](const auto& csr) { return cut(csr, begin, last, cost, sources); }, graph);
}

RowBlock make_row_block(const AnyCsr& graph, const BlockRange& range, bool one_loop_each,
                        VertexSet& sources) {
  return std::visit([&](const auto& csr) { return make(csr, range, one_loop_each, sources); },
                    graph);
}

std::vector<float> degrees_of(const AnyCsr& graph, const BlockRange& range, bool one_loop_each) {
  return std::visit([&](const auto& csr) { return row_sums(rows_of(csr, range, one_loop_each)); },
                    graph);
}

}  // namespace plait
