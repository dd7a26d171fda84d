#include "plait/reorder/quotient.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plait/reorder/members.h"

namespace plait {
namespace {

constexpr std::uint64_t kWorkPerPiece = std::uint64_t{1} << 16;
constexpr std::size_t kLabelGrain = std::size_t{1} << 16;

using Row = std::pair<std::vector<std::uint32_t>, std::vector<std::uint64_t>>;

// Consecutive communities whose members have about equally much work; never less than one.
std::vector<std::uint32_t> pieces_of(const Members& members, auto&& work_of) {
  std::vector<std::uint32_t> starts{0};
  std::uint64_t work = 0;
  const std::size_t count = members.begin.size() - 1;
  for (std::size_t c = 0; c < count; ++c) {
    for (auto i = members.begin[c]; i < members.begin[c + 1]; ++i)
      work += work_of(members.vertices[i]);
    if (work < kWorkPerPiece && c + 1 < count) continue;
    starts.push_back(static_cast<std::uint32_t>(c + 1));
    work = 0;
  }
  return starts;
}

// Sums the edges of the members of every community by the label at their other end: each_edge(v,
// take) calls take(label, weight) for each edge of v. Sets all but the degrees.
void sum_rows(Quotient& quotient, const Members& members, auto&& work_of, auto&& each_edge) {
  const std::size_t communities = members.begin.size() - 1;
  const std::vector<std::uint32_t> starts = pieces_of(members, work_of);
  std::vector<Row> rows(starts.size() - 1);
  SumsOfThreads sums_of_threads(communities);
  quotient.offsets.assign(communities + 1, 0);
  parallel_for(rows.size(), [&](std::size_t piece) {
    SumsByLabel& sums = sums_of_threads.mine();
    for (std::uint32_t c = starts[piece]; c < starts[piece + 1]; ++c) {
      for (auto i = members.begin[c]; i < members.begin[c + 1]; ++i)
        each_edge(members.vertices[i], [&](std::uint32_t label, std::uint64_t weight) {
          if (label != c) sums.add(label, weight);
        });
      for (const std::uint32_t label : sums.labels()) {
        rows[piece].first.push_back(label);
        rows[piece].second.push_back(sums.of(label));
        ++quotient.offsets[c + 1];
      }
      sums.clear();
    }
  });
  for (std::size_t c = 0; c < communities; ++c) quotient.offsets[c + 1] += quotient.offsets[c];
  quotient.neighbours = Buffer<std::uint32_t>(quotient.offsets.back());
  quotient.weights = Buffer<std::uint64_t>(quotient.offsets.back());
  parallel_for(rows.size(), [&](std::size_t piece) {
    const EdgeOffset at = quotient.offsets[starts[piece]];
    std::ranges::copy(rows[piece].first, quotient.neighbours.begin() + at);
    std::ranges::copy(rows[piece].second, quotient.weights.begin() + at);
  });
}

// Adds to each row the entries that lead to it, and to each degree the edges that do.
Quotient both_ways(const Quotient& one) {
  const std::uint32_t communities = one.communities();
  std::vector<EdgeOffset> begin(communities + std::size_t{1});
  for (const std::uint32_t to : one.neighbours) ++begin[to + std::size_t{1}];
  for (std::size_t c = 0; c < communities; ++c) begin[c + 1] += begin[c];
  std::vector<std::pair<std::uint32_t, std::uint64_t>> back(one.neighbours.size());
  std::vector<EdgeOffset> at(begin.begin(), begin.end() - 1);
  for (std::uint32_t c = 0; c < communities; ++c)
    for (EdgeOffset e = one.offsets[c]; e < one.offsets[c + 1]; ++e)
      back[at[one.neighbours[e]]++] = {c, one.weights[e]};
  std::vector<std::uint32_t> labels(communities);
  for (std::uint32_t c = 0; c < communities; ++c) labels[c] = c;
  Quotient both;
  both.total = 2 * one.total;
  sum_rows(
      both, members_of(labels, communities),
      [&](std::uint32_t c) {
        return one.offsets[c + 1] - one.offsets[c] + begin[c + 1] - begin[c];
      },
      [&](std::uint32_t c, auto&& take) {
        for (EdgeOffset e = one.offsets[c]; e < one.offsets[c + 1]; ++e)
          take(one.neighbours[e], one.weights[e]);
        for (EdgeOffset e = begin[c]; e < begin[c + 1]; ++e) take(back[e].first, back[e].second);
      });
  const auto sum = [](const Quotient& graph, std::uint32_t c) {
    return std::accumulate(graph.weights.begin() + graph.offsets[c],
                           graph.weights.begin() + graph.offsets[c + 1], std::uint64_t{0});
  };
  for (std::uint32_t c = 0; c < communities; ++c) {
    const std::uint64_t inner = one.degrees[c] - sum(one, c);
    both.degrees.push_back(2 * inner + sum(both, c));
  }
  return both;
}

// Adds up numbers of vertices by label.
std::vector<std::uint64_t> sums_by_label(std::span<const std::uint32_t> labels,
                                         std::uint32_t communities, auto&& value_of) {
  std::vector<std::uint64_t> sums(communities);
  for (std::size_t v = 0; v < labels.size(); ++v) sums[labels[v]] += value_of(v);
  return sums;
}

}  // namespace

std::uint32_t make_dense(std::span<std::uint32_t> labels) {
  std::vector<std::uint32_t> number(labels.size());
  for (const std::uint32_t label : labels) number[label] = 1;
  std::uint32_t count = 0;
  for (std::uint32_t& one : number) one = one != 0 ? count++ : 0;
  parallel_blocks(labels.size(), kLabelGrain, [&](std::size_t begin, std::size_t end) {
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
        quotient.degrees =
            sums_by_label(labels, communities, [&](std::size_t v) { return graph.degree(v); });
        sum_rows(
            quotient, members_of(labels, communities),
            [&](std::uint32_t v) { return graph.degree(v) + 1; },
            [&](std::uint32_t v, auto&& take) {
              for (const auto u : graph.row(v)) take(labels[u], 1);
            });
        return symmetric ? std::move(quotient) : both_ways(quotient);
      },
      any);
}

Quotient quotient_of(const Quotient& graph, std::span<const std::uint32_t> labels,
                     std::uint32_t communities) {
  Quotient quotient;
  quotient.total = graph.total;
  quotient.degrees =
      sums_by_label(labels, communities, [&](std::size_t v) { return graph.degrees[v]; });
  sum_rows(
      quotient, members_of(labels, communities),
      [&](std::uint32_t v) { return graph.offsets[v + 1] - graph.offsets[v] + 1; },
      [&](std::uint32_t v, auto&& take) {
        for (EdgeOffset e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e)
          take(labels[graph.neighbours[e]], graph.weights[e]);
      });
  return quotient;
}

void put_joined_first(std::span<std::uint32_t> labels, Quotient& graph) {
  const std::uint32_t communities = graph.communities();
  std::vector<std::uint32_t> number(communities);
  for (std::uint32_t c = 0; c < communities; ++c)
    if (graph.offsets[c] < graph.offsets[c + 1]) number[c] = 1;
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
  parallel_blocks(labels.size(), kLabelGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v) labels[v] = number[labels[v]];
  });
}

}  // namespace plait
