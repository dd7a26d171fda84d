#include "plait/sample/non_edges.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/random.h"
#include "plait/base/saturating.h"
#include "plait/sample/check.h"

namespace plait {
namespace {

constexpr std::size_t kNonEdgesGrain = std::size_t{1} << 12;

// Calls take(column) for the columns of a row that are in no pair, ascending and once each.
template <VertexId V, class Take>
void for_excluded(const Csr<V>& graph, std::uint64_t row, PairKind kind, Take take) {
  const std::uint64_t least = kind == PairKind::ascending ? row + 1 : 0;
  bool loop = kind == PairKind::no_loops;  // that is still to come
  std::uint64_t next = least;              // all lesser ones have been taken, or are none
  for (const std::uint64_t column : graph.row(row)) {
    if (loop && row <= column) {
      loop = false;
      if (row < column) take(row);
    }
    if (column >= next) {
      take(column);
      next = column + 1;
    }
  }
  if (loop) take(row);
}

template <VertexId V>
void check_pairs(const Csr<V>& graph, std::uint64_t rows, std::uint64_t columns) {
  const std::size_t bad = first_where(graph.vertices(), kNonEdgesGrain, [&](std::size_t v) {
    const auto row = graph.row(v);
    return !row.empty() &&
           (v >= rows || !std::ranges::is_sorted(row) || std::uint64_t{row.back()} >= columns);
  });
  if (bad < graph.vertices())
    throw UsageError(fmt::format("row {} of the edges is not sorted, or not within {} x {} pairs",
                                 bad, rows, columns));
}

// A set of numbers, of at most a given size.
class NumberSet {
 public:
  explicit NumberSet(std::uint64_t size) : slots_(std::bit_ceil(2 * size), kEmpty) {}

  // Adds the number. Returns whether it is new.
  bool add(std::uint64_t number) {
    const std::uint64_t mask = slots_.size() - 1;
    std::uint64_t slot = number * 0x9E3779B97F4A7C15u >> 20 & mask;
    for (; slots_[slot] != kEmpty; slot = (slot + 1) & mask)
      if (slots_[slot] == number) return false;
    slots_[slot] = number;
    return true;
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  Buffer<std::uint64_t> slots_;
};

// Turns numbers below population - count + i + 1 into different ones: Floyd's algorithm (draw.h).
void make_distinct(std::span<std::uint64_t> numbers, std::uint64_t population) {
  NumberSet set(numbers.size());
  const std::uint64_t base = population - numbers.size();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!set.add(numbers[i])) set.add(numbers[i] = base + i);
}

}  // namespace

void throw_full_row(std::uint64_t row, std::uint64_t columns) {
  throw UsageError(fmt::format(
      "vertex {} has edges to all {} vertices, so that no other pair of it can be drawn", row,
      columns));
}

NonEdges::NonEdges(const AnyCsr& graph, std::uint64_t rows, std::uint64_t columns, PairKind kind)
    : rows_(rows), columns_(columns), ascending_(kind == PairKind::ascending) {
  require<DoesNotFitError>(rows < kMaxVertices32 && columns < kMaxVertices32,
                           "pairs of {} x {} vertices; at most {} each are possible", rows, columns,
                           kMaxVertices32 - 1);
  require<UsageError>(rows <= vertex_count(graph) && (kind == PairKind::all || rows == columns),
                      "pairs of {} x {} vertices do not suit a graph with {}", rows, columns,
                      vertex_count(graph));
  const Bytes bytes = (Bytes(rows) + 1) * Bytes(sizeof(std::uint64_t) + sizeof(EdgeOffset)) +
                      Bytes(edge_count(graph)) * Bytes(sizeof(std::uint32_t));
  require_large_memory(bytes.value, "the pairs of vertices");
  before_ = Buffer<std::uint64_t>(rows + 1);
  offsets_ = Buffer<EdgeOffset>(rows + 1, 0);
  std::visit(
      [&](const auto& csr) {
        check_pairs(csr, rows, columns);
        const auto each_row = [&](auto body) {
          parallel_blocks(rows, kNonEdgesGrain, [&](std::size_t begin, std::size_t end) {
            for (std::size_t row = begin; row < end; ++row) body(row);
          });
        };
        each_row([&](std::size_t row) {
          for_excluded(csr, row, kind, [&](std::uint64_t) { ++offsets_[row + 1]; });
        });
        before_[0] = 0;
        for (std::size_t row = 0; row < rows; ++row) {
          const std::uint64_t possible = columns - (ascending_ ? row + 1 : 0);
          before_[row + 1] = before_[row] + possible - offsets_[row + 1];
          offsets_[row + 1] += offsets_[row];
        }
        excluded_ = Buffer<std::uint32_t>(offsets_[rows]);
        each_row([&](std::size_t row) {
          EdgeOffset at = offsets_[row];
          for_excluded(csr, row, kind, [&](std::uint64_t column) {
            excluded_[at++] = static_cast<std::uint32_t>(column);
          });
        });
      },
      graph);
}

RawVector<NonEdges::Pair> NonEdges::draw(std::uint64_t wanted, bool replace,
                                         std::uint64_t key) const {
  const std::uint64_t all = count();
  const std::uint64_t size = drawn(wanted, replace);
  // A pair, its number and, if they are to differ, two to four places of a table.
  require_memory((Bytes(size) * Bytes(replace ? 24 : 56)).value, "an array of the pairs to draw");
  const Philox philox(key);
  RawVector<std::uint64_t> numbers(size);
  const bool whole = !replace && size == all;
  parallel_blocks(size, kNonEdgesGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      numbers[i] = whole ? i : non_edge_number(philox, i, replace ? all : all - size + i + 1);
  });
  if (!replace && !whole) make_distinct(numbers, all);
  RawVector<Pair> pairs(size);
  parallel_blocks(size, kNonEdgesGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) pairs[i] = pair(numbers[i]);
  });
  return pairs;
}

RawVector<std::uint64_t> NonEdges::draw_columns(std::span<const std::uint64_t> rows,
                                                std::uint64_t key) const {
  check_ids("source", rows_, rows);
  const std::size_t bad =
      first_where(rows.size(), kNonEdgesGrain, [&](std::size_t i) { return count(rows[i]) == 0; });
  if (bad < rows.size()) throw_full_row(rows[bad], columns_);
  const Philox philox(key);
  RawVector<std::uint64_t> columns(rows.size());
  parallel_blocks(rows.size(), kNonEdgesGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      columns[i] = column(rows[i], non_edge_number(philox, i, count(rows[i])));
  });
  return columns;
}

}  // namespace plait
