#include "plait/base/error.h"
#include "plait/partition/partition.h"
#include "plait/reorder/metis_graph.h"

namespace plait {

Partition partition_by_metis(const AnyCsr& any, int parts, std::uint64_t seed) {
  const std::uint64_t vertices = vertex_count(any);
  // METIS does not promise anything for fewer vertices than parts, or for one part.
  if (parts == 1 || vertices <= static_cast<std::uint64_t>(parts))
    return partition_by_vertices(vertices, parts);
  MetisGraph graph = metis_graph(any, "use --partition edges");

  auto n = static_cast<idx_t>(vertices), constraints = idx_t{1}, k = static_cast<idx_t>(parts);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed & 0x7fffffff);
  idx_t cut = 0;
  Buffer<idx_t> part(vertices);
  const int status = METIS_PartGraphKway(
      &n, &constraints, graph.offsets.data(), graph.neighbours.data(), graph.vertex_weights.data(),
      nullptr, nullptr, &k, nullptr, nullptr, options, &cut, part.data());
  require<DoesNotFitError>(status != METIS_ERROR_MEMORY,
                           "METIS has not enough memory for {} vertices", n);
  require(status == METIS_OK, "METIS failed with status {} on {} vertices in {} parts", status,
          vertices, parts);

  Buffer<std::uint32_t> owner(vertices);
  for (std::uint64_t v = 0; v < vertices; ++v) owner[v] = static_cast<std::uint32_t>(part[v]);
  return Partition::of_owners(parts, std::move(owner));
}

}  // namespace plait
