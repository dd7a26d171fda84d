#include "plait/apps/walk_verifier.h"

#include <algorithm>
#include <vector>

#include "plait/base/error.h"
#include "plait/graph/renumber.h"
#include "plait/graph/validate.h"

namespace plait {

struct WalkVerifier::Graph {
  AnyCsr rows;  // of inward edges
  bool sorted = false, weighted = false;
  Buffer<std::uint64_t> by_number;  // the vertex of each number; empty: the same
  std::vector<bool> leads_on;       // by number: an edge, not of weight 0, leaves the vertex

  std::uint64_t vertex(std::uint64_t number) const {
    return by_number.empty() ? number : by_number[number];
  }
  // Tells whether an edge, not of weight 0, leads from one number to another.
  bool has_edge(std::uint64_t from, std::uint64_t to) const {
    return std::visit(
        [&]<VertexId V>(const Csr<V>& csr) {
          const auto row = csr.row(vertex(to));
          const auto source = static_cast<V>(vertex(from));
          const EdgeOffset first = csr.offsets[vertex(to)];
          auto at = sorted ? std::ranges::lower_bound(row, source) : row.begin();
          for (; at != row.end() && (!sorted || *at == source); ++at)
            if (*at == source &&
                (!weighted || csr.weights[first + static_cast<EdgeOffset>(at - row.begin())] > 0))
              return true;
          return false;
        },
        rows);
  }
};

WalkVerifier::WalkVerifier(const Dataset& dataset, bool weighted, const WalkQuestion& question)
    : question_(question) {
  auto graph = std::make_unique<Graph>();
  graph->rows = dataset.graph;
  graph->weighted = weighted && is_weighted(dataset.graph);
  graph->by_number = vertices_by_number(dataset);
  graph->leads_on.resize(dataset.vertices());
  std::visit(
      [&](const auto& csr) {
        graph->sorted = rows_are_sorted(csr);
        for (EdgeOffset e = 0; e < csr.edges(); ++e)
          if (!graph->weighted || csr.weights[e] > 0)
            graph->leads_on[dataset.number(csr.neighbours[e])] = true;
      },
      dataset.graph);
  graph_ = std::move(graph);
}

WalkVerifier::~WalkVerifier() = default;

void WalkVerifier::check(std::span<const std::int64_t> walks) {
  const std::uint64_t width = question_.width();
  for (std::uint64_t at = 0; at < walks.size(); at += width)
    check_walk(checked_++, walks.subspan(at, width));
}

void WalkVerifier::check_walk(std::uint64_t number, std::span<const std::int64_t> walk) {
  const std::uint64_t start = question_.start(number);
  require<MismatchError>(static_cast<std::uint64_t>(walk[0]) == start,
                         "walk {} begins at vertex {}, not {}", number, walk[0], start);
  std::uint64_t stays = 0;
  for (std::uint64_t s = 1; s < walk.size(); ++s) {
    const auto from = static_cast<std::uint64_t>(walk[s - 1]);
    const auto to = static_cast<std::uint64_t>(walk[s]);
    require<MismatchError>(to < graph_->leads_on.size(),
                           "step {} of walk {} leads to {}, which is no vertex", s, number,
                           walk[s]);
    const bool right = graph_->leads_on[from] ? graph_->has_edge(from, to) : from == to;
    require<MismatchError>(right || (question_.settings.restart > 0 && to == start),
                           "step {} of walk {} leads from vertex {} to {}, but no edge does", s,
                           number, from, to);
    stays += !graph_->leads_on[from];
  }
  totals_.steps += walk.size() - 1 - stays;
  totals_.stopped += stays > 0;
}

void WalkVerifier::check(const WalkTotals& totals) const {
  require<MismatchError>(checked_ == question_.count(), "there are {} walks, not {}", checked_,
                         question_.count());
  require<MismatchError>(totals == totals_,
                         "there are {} steps and {} stopped walks, not {} and {}", totals.steps,
                         totals.stopped, totals_.steps, totals_.stopped);
}

}  // namespace plait
