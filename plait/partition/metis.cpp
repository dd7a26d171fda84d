#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/setting.h"
#include "plait/communities/clusters.h"
#include "plait/communities/quotient.h"
#include "plait/partition/partition.h"
#include "plait/reorder/metis_graph.h"

namespace plait {
namespace {

std::string remedy() { return "use " + setting("partition", "edges"); }

// Vertices that stay together, and the work of each group: edges of its rows, plus one per row.
struct Groups {
  std::vector<std::uint32_t> of;  // by vertex
  std::vector<std::uint64_t> work;
};

// Returns the clusters of label propagation, in pieces of consecutive ids that are small beside a
// part, so that parts can be balanced whatever the clusters are.
template <VertexId V>
Groups groups_of(const Csr<V>& graph, int parts) {
  constexpr std::uint64_t kPiecesOfPart = 64;
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t n = graph.vertices();
  require(n < kMetisVertices, "METIS takes fewer than {} vertices, but the graph has {}; {}",
          kMetisVertices, n, remedy());
  const auto offsets = graph.offsets.span();
  Groups groups{find_clusters(offsets.first(n), offsets.subspan(1, n), graph.neighbours.data()),
                {}};
  const std::uint64_t most =
      (graph.edges() + n) / (kPiecesOfPart * static_cast<std::uint64_t>(parts)) + 1;
  std::vector<std::uint32_t> piece(n, kNone);  // of each cluster, which still grows
  for (std::uint64_t v = 0; v < n; ++v) {
    const std::uint64_t work = graph.degree(v) + 1;
    std::uint32_t& group = piece[groups.of[v]];
    if (group == kNone || groups.work[group] + work > most) {
      group = static_cast<std::uint32_t>(groups.work.size());
      groups.work.push_back(0);
    }
    groups.work[group] += work;
    groups.of[v] = group;
  }
  return groups;
}

// METIS may leave parts of a small graph empty. Each of these gets a vertex of a part that has more
// than its share. There is such a part as long as a part is empty. There are at least as many
// vertices as parts.
void fill_empty_parts(std::span<std::uint32_t> owner, int parts) {
  std::vector<std::uint64_t> count(static_cast<std::size_t>(parts));
  for (const std::uint32_t part : owner) ++count[part];
  std::uint32_t empty = 0;
  for (std::uint32_t& part : owner) {
    while (empty < count.size() && count[empty] > 0) ++empty;
    if (empty == count.size()) return;
    if (count[part] * count.size() <= owner.size()) continue;
    --count[part], ++count[empty];
    part = empty;
  }
}

Partition of_parts(const Buffer<idx_t>& part, int parts, std::uint64_t vertices, auto&& place_of) {
  Buffer<std::uint32_t> owner(vertices);
  for (std::uint64_t v = 0; v < vertices; ++v)
    owner[v] = static_cast<std::uint32_t>(part[place_of(v)]);
  fill_empty_parts(owner.span(), parts);
  return Partition::of_owners(parts, std::move(owner));
}

// METIS begins by merging vertices into ever smaller graphs. Label propagation and a quotient do
// the first of these steps for a graph that METIS cannot count.
Partition partition_large(const AnyCsr& any, int parts, std::uint64_t seed) {
  const Groups groups = std::visit([&](const auto& graph) { return groups_of(graph, parts); }, any);
  const auto count = static_cast<std::uint32_t>(groups.work.size());
  // A few rows have almost all edges; there is nothing to choose.
  if (count <= static_cast<std::uint32_t>(parts)) return partition_by_edges(any, parts);
  const Buffer<idx_t> part =
      metis_parts(METIS_PartGraphKway,
                  metis_graph(quotient_of(any, false, groups.of, count), groups.work, remedy()),
                  static_cast<std::uint64_t>(parts), seed);
  return of_parts(part, parts, groups.of.size(), [&](std::uint64_t v) { return groups.of[v]; });
}

}  // namespace

Partition partition_by_metis(const AnyCsr& any, int parts, std::uint64_t seed,
                             std::uint64_t most_edges) {
  const std::uint64_t vertices = vertex_count(any);
  // METIS does not promise anything for fewer vertices than parts, or for one part.
  if (parts == 1 || vertices <= static_cast<std::uint64_t>(parts))
    return partition_by_vertices(vertices, parts);
  if (edge_count(any) >= most_edges) return partition_large(any, parts, seed);
  const Buffer<idx_t> part = metis_parts(METIS_PartGraphKway, metis_graph(any, remedy()),
                                         static_cast<std::uint64_t>(parts), seed);
  return of_parts(part, parts, vertices, [](std::uint64_t v) { return v; });
}

}  // namespace plait
