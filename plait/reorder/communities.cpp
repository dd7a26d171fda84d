#include "plait/reorder/communities.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "plait/base/parallel.h"
#include "plait/base/row_grain.h"
#include "plait/reorder/methods.h"

namespace plait {
namespace {

// Numbers by label.
struct Counts {
  explicit Counts(std::size_t labels) : vertices(labels), in(labels), out(labels) {}

  std::vector<std::uint64_t> vertices;
  std::vector<std::uint64_t> in, out;  // edges that lead to a vertex of the label, and from one
};

void add(std::uint64_t& to, std::uint64_t value) {
  std::atomic_ref(to).fetch_add(value, std::memory_order_relaxed);
}

template <VertexId V>
CommunityStatistics describe(const Csr<V>& graph, std::span<const std::uint32_t> labels) {
  CommunityStatistics found;
  Counts counts(labels.size());
  std::uint64_t inner = 0;
  parallel_blocks(labels.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    std::uint64_t here = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t mine = labels[i];
      add(counts.vertices[mine], 1);
      add(counts.in[mine], graph.degree(i));
      for (const V j : graph.row(i)) {
        here += labels[j] == mine;
        add(counts.out[labels[j]], 1);
      }
    }
    add(inner, here);
  });
  for (const std::uint64_t vertices : counts.vertices) {
    found.communities += vertices > 1;
    if (vertices > 1) found.largest = std::max(found.largest, vertices);
  }
  if (graph.edges() == 0) return found;
  const auto edges = static_cast<double>(graph.edges());
  found.inner_edges = static_cast<double>(inner) / edges;
  double by_chance = 0;
  for (std::size_t label = 0; label < labels.size(); ++label)
    by_chance += static_cast<double>(counts.in[label]) / edges *
                 (static_cast<double>(counts.out[label]) / edges);
  found.modularity = found.inner_edges - by_chance;
  return found;
}

}  // namespace

CommunityStatistics community_statistics(const AnyCsr& any, std::span<const std::uint32_t> labels) {
  return std::visit([&](const auto& graph) { return describe(graph, labels); }, any);
}

CommunityStatistics community_statistics(const AnyCsr& graph, bool symmetric) {
  return community_statistics(graph, order_by_communities({graph, symmetric}).communities);
}

}  // namespace plait
