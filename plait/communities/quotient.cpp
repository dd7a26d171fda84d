#include "plait/communities/quotient.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plait/communities/members.h"
#include "plait/communities/sums_by_label.h"

namespace plait {
namespace {

constexpr std::uint64_t kWorkPerPiece = std::uint64_t{1} << 15;
constexpr std::size_t kQuotientGrain = std::size_t{1} << 16;

struct Rows {
  std::vector<std::uint32_t> neighbours;
  std::vector<std::uint64_t> weights;
};

// Returns the threads that so many pieces are worth. Each takes memory for all labels.
int threads_for(std::size_t pieces) {
  return static_cast<int>(
      std::clamp<std::size_t>(pieces, 1, static_cast<std::size_t>(thread_count())));
}

// The rows first .. last - 1 of the quotient of so many communities.
struct RowRange {
  std::uint32_t first, last, communities;
};

// Returns where pieces of consecutive rows begin that have about equally much work, and the end of
// the rows; a piece has one row at least.
std::vector<std::uint32_t> pieces_of(const RowRange& range, auto&& work_of) {
  std::vector<std::uint32_t> starts{range.first};
  std::uint64_t work = 0;
  for (std::uint32_t c = range.first; c < range.last; ++c) {
    work += work_of(c);
    if (work < kWorkPerPiece && c + 1 < range.last) continue;
    starts.push_back(c + 1);
    work = 0;
  }
  return starts;
}

// Sums the edges of every community of the range by the community at their other end:
// each_edge(c, add) calls add(other, weight) for each of them. work_of(c) is about the number of
// the edges. Sets the rows of the quotient, and returns the edges inside of each community.
std::vector<std::uint64_t> sum_rows(Quotient& quotient, const RowRange& range, auto&& work_of,
                                    auto&& each_edge) {
  const std::vector<std::uint32_t> starts = pieces_of(range, work_of);
  const std::size_t count = range.last - range.first;
  std::vector<Rows> rows(starts.size() - 1);
  std::vector<std::uint64_t> inside(count);
  const ThreadCount threads(threads_for(rows.size()));
  SumsOfThreads sums_of_threads(range.communities, threads_for(rows.size()));
  quotient.offsets.assign(count + 1, 0);
  parallel_for(rows.size(), [&](std::size_t piece) {
    SumsByLabel& sums = sums_of_threads.mine();
    auto& [neighbours, weights] = rows[piece];
    for (std::uint32_t c = starts[piece]; c < starts[piece + 1]; ++c) {
      const auto others = sums.add(c, [&](auto&& add) { each_edge(c, add); });
      neighbours.insert(neighbours.end(), others.begin(), others.end());
      for (const std::uint32_t other : others) weights.push_back(sums.take(other));
      inside[c - range.first] = sums.take(c);
      quotient.offsets[c - range.first + std::size_t{1}] = others.size();
    }
  });
  for (std::size_t i = 0; i < count; ++i) quotient.offsets[i + 1] += quotient.offsets[i];
  quotient.neighbours = Buffer<std::uint32_t>(quotient.offsets.back());
  quotient.weights = Buffer<std::uint64_t>(quotient.offsets.back());
  parallel_for(rows.size(), [&](std::size_t piece) {
    const EdgeOffset at = quotient.offsets[starts[piece] - range.first];
    std::ranges::copy(rows[piece].neighbours, quotient.neighbours.begin() + at);
    std::ranges::copy(rows[piece].weights, quotient.weights.begin() + at);
  });
  return inside;
}

// The same, where a community has the edges of its members, `edges` in all: each_edge(v, add) has
// those of a member, and degree_of(v) is the number of its edge ends. Sets all of the quotient but
// its total.
std::vector<std::uint64_t> sum_members(Quotient& quotient, std::span<const std::uint32_t> labels,
                                       std::uint32_t communities, EdgeOffset edges,
                                       auto&& degree_of, auto&& each_edge) {
  const Members members = members_of(labels, communities);
  const std::uint64_t per_member = 1 + edges / (labels.size() + 1);
  quotient.degrees.resize(communities);
  return sum_rows(
      quotient, {0, communities, communities},
      [&](std::uint32_t c) { return per_member * (members.begin[c + 1] - members.begin[c]); },
      [&](std::uint32_t c, auto&& add) {
        std::uint64_t degree = 0;
        for (auto i = members.begin[c]; i < members.begin[c + 1]; ++i) {
          const std::uint32_t v = members.vertices[i];
          degree += degree_of(v);
          each_edge(v, add);
        }
        quotient.degrees[c] = degree;
      });
}

// The entries of a quotient by the community that they lead to.
struct Reversed {
  std::vector<EdgeOffset> offsets;
  Buffer<std::uint32_t> from;
  Buffer<std::uint64_t> weights;
};

Reversed reversed(const Quotient& graph) {
  const std::uint32_t communities = graph.communities();
  Reversed back{std::vector<EdgeOffset>(communities + std::size_t{2}),
                Buffer<std::uint32_t>(graph.neighbours.size()),
                Buffer<std::uint64_t>(graph.neighbours.size())};
  // While entries are sorted, offsets[c + 1] is the place of the next one that leads to c.
  for (const std::uint32_t to : graph.neighbours) ++back.offsets[to + std::size_t{2}];
  for (std::size_t c = 2; c < back.offsets.size(); ++c) back.offsets[c] += back.offsets[c - 1];
  for (std::uint32_t c = 0; c < communities; ++c)
    for (EdgeOffset e = graph.offsets[c]; e < graph.offsets[c + 1]; ++e) {
      const EdgeOffset place = back.offsets[graph.neighbours[e] + std::size_t{1}]++;
      back.from[place] = c;
      back.weights[place] = graph.weights[e];
    }
  back.offsets.pop_back();
  return back;
}

// Adds to each row the entries that lead to it, and to each degree the edges that do. `inside` has
// the edges inside of each community.
Quotient both_ways(const Quotient& one, std::span<const std::uint64_t> inside) {
  const Reversed back = reversed(one);
  Quotient both;
  both.total = 2 * one.total;
  both.degrees.resize(one.communities());
  sum_rows(
      both, {0, one.communities(), one.communities()},
      [&](std::uint32_t c) {
        return one.offsets[c + 1] - one.offsets[c] + back.offsets[c + 1] - back.offsets[c];
      },
      [&](std::uint32_t c, auto&& add) {
        std::uint64_t degree = one.degrees[c] + inside[c];
        for (EdgeOffset e = one.offsets[c]; e < one.offsets[c + 1]; ++e)
          add(one.neighbours[e], one.weights[e]);
        for (EdgeOffset e = back.offsets[c]; e < back.offsets[c + 1]; ++e) {
          add(back.from[e], back.weights[e]);
          degree += back.weights[e];
        }
        both.degrees[c] = degree;
      });
  return both;
}

}  // namespace

std::uint32_t make_dense(std::span<std::uint32_t> labels) {
  std::vector<std::uint32_t> number(labels.size());
  for (const std::uint32_t label : labels) number[label] = 1;
  std::uint32_t count = 0;
  for (std::uint32_t& one : number) one = one != 0 ? count++ : 0;
  parallel_blocks(labels.size(), kQuotientGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v) labels[v] = number[labels[v]];
  });
  return count;
}

Quotient quotient_of(const AnyCsr& any, bool symmetric, std::span<const std::uint32_t> labels,
                     std::uint32_t communities) {
  return std::visit(
      [&](const auto& graph) {
        Quotient quotient;
        quotient.total = graph.edges();
        const auto inside = sum_members(
            quotient, labels, communities, graph.edges(),
            [&](std::uint32_t v) { return graph.degree(v); },
            [&](std::uint32_t v, auto&& add) {
              for (const auto u : graph.row(v)) add(labels[u], 1);
            });
        return symmetric ? std::move(quotient) : both_ways(quotient, inside);
      },
      any);
}

Quotient quotient_of(const WeightedRows& graph, std::span<const std::uint32_t> labels,
                     std::uint32_t communities) {
  Quotient quotient;
  quotient.total = graph.total;
  std::vector<std::uint32_t> of_rows;
  if (graph.vertices != nullptr) {
    of_rows.resize(graph.rows);
    for (std::uint32_t row = 0; row < graph.rows; ++row) of_rows[row] = labels[graph.vertex(row)];
  }
  sum_members(
      quotient, graph.vertices == nullptr ? labels.first(graph.rows) : of_rows, communities,
      graph.entries, [&](std::uint32_t row) { return graph.degrees[graph.vertex(row)]; },
      [&](std::uint32_t row, auto&& add) {
        for (EdgeOffset e = graph.begin[row]; e < graph.end[row]; ++e)
          if (graph.weight(e) > 0) add(labels[graph.neighbours[e]], graph.weight(e));
      });
  return quotient;
}

Quotient sum_of(std::span<const Quotient> parts, std::uint32_t first, std::uint32_t communities) {
  Quotient sum;
  const auto rows = static_cast<std::uint32_t>(parts[0].offsets.size() - 1);
  sum_rows(
      sum, {first, first + rows, communities},
      [&](std::uint32_t c) {
        EdgeOffset entries = 1;
        for (const Quotient& part : parts)
          entries += part.offsets[c - first + std::size_t{1}] - part.offsets[c - first];
        return entries;
      },
      [&](std::uint32_t c, auto&& add) {
        for (const Quotient& part : parts)
          for (EdgeOffset e = part.offsets[c - first]; e < part.offsets[c - first + std::size_t{1}];
               ++e)
            add(part.neighbours[e], part.weights[e]);
      });
  return sum;
}

WeightedRows Quotient::rows() const {
  return {.begin = offsets.data(),
          .end = offsets.data() + 1,
          .neighbours = neighbours.data(),
          .weights = weights.data(),
          .degrees = degrees.data(),
          .rows = communities(),
          .count = communities(),
          .entries = neighbours.size(),
          .total = total};
}

void put_joined_first(std::span<std::uint32_t> labels, Quotient& graph) {
  const std::uint32_t communities = graph.communities();
  std::vector<std::uint32_t> number(communities);
  for (std::uint32_t c = 0; c < communities; ++c)
    number[c] = graph.offsets[c] < graph.offsets[c + 1];
  if (std::ranges::find(number, 0u) == number.end()) return;
  for (const std::uint32_t c : graph.neighbours) number[c] = 1;
  const auto joined =
      static_cast<std::uint32_t>(std::count(number.begin(), number.end(), std::uint32_t{1}));
  std::uint32_t before = 0;
  for (std::uint32_t c = 0; c < communities; ++c) {
    if (number[c] == 0) {
      number[c] = joined + c - before;
      continue;
    }
    graph.offsets[before] = graph.offsets[c];
    graph.degrees[before] = graph.degrees[c];
    number[c] = before++;
  }
  graph.offsets[joined] = graph.neighbours.size();
  graph.offsets.resize(joined + std::size_t{1});
  graph.degrees.resize(joined);
  for (std::uint32_t& c : graph.neighbours) c = number[c];
  parallel_blocks(labels.size(), kQuotientGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v) labels[v] = number[labels[v]];
  });
}

}  // namespace plait
