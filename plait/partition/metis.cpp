#include "plait/partition/partition.h"
#include "plait/reorder/metis_graph.h"

namespace plait {

Partition partition_by_metis(const AnyCsr& any, int parts, std::uint64_t seed) {
  const std::uint64_t vertices = vertex_count(any);
  // METIS does not promise anything for fewer vertices than parts, or for one part.
  if (parts == 1 || vertices <= static_cast<std::uint64_t>(parts))
    return partition_by_vertices(vertices, parts);
  const Buffer<idx_t> part =
      metis_parts(METIS_PartGraphKway, metis_graph(any, "use --partition edges"),
                  static_cast<std::uint64_t>(parts), seed);
  Buffer<std::uint32_t> owner(vertices);
  for (std::uint64_t v = 0; v < vertices; ++v) owner[v] = static_cast<std::uint32_t>(part[v]);
  return Partition::of_owners(parts, std::move(owner));
}

}  // namespace plait
