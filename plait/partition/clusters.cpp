#include "plait/communities/clusters.h"

#include <limits>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/setting.h"
#include "plait/partition/partition.h"

namespace plait {

// Vertices are put in the order of their labels, and of ids within a label; a vertex goes to the
// part in which the middle of its edges falls. Labels are ids, so they are sorted by counting.
Partition partition_by_clusters(const AnyCsr& any, int parts) {
  return std::visit(
      [&](const auto& graph) {
        const std::uint64_t n = graph.vertices();
        if (parts == 1 || graph.edges() == 0) return partition_by_vertices(n, parts);
        constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
        require(n <= kMost, "clusters need at most {} vertices, but the graph has {}; use {}",
                kMost, n, setting("partition", "edges"));
        const auto offsets = graph.offsets.span();
        const std::vector<std::uint32_t> label =
            find_clusters(offsets.first(n), offsets.subspan(1, n), graph.neighbours.data());
        std::vector<EdgeOffset> place(n + 1, 0);  // of the next edge of each label
        for (std::uint64_t v = 0; v < n; ++v) place[label[v] + 1] += graph.degree(v);
        for (std::uint64_t l = 0; l < n; ++l) place[l + 1] += place[l];
        Buffer<std::uint32_t> owner(n);
        for (std::uint64_t v = 0; v < n; ++v) {
          EdgeOffset& at = place[label[v]];
          const EdgeOffset middle = 2 * at + graph.degree(v), all = 2 * graph.edges();
          const auto part =
              static_cast<unsigned __int128>(middle) * static_cast<std::uint64_t>(parts) / all;
          owner[v] =
              std::min(static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(parts - 1));
          at += graph.degree(v);
        }
        return Partition::of_owners(parts, std::move(owner));
      },
      any);
}

}  // namespace plait
