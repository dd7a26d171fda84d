#include <metis.h>

#include <limits>

#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/partition/partition.h"

namespace plait {
namespace {

struct MetisGraph {
  Buffer<idx_t> offsets;
  Buffer<idx_t> neighbours;
  Buffer<idx_t> vertex_weights;  // the work of a row: its edges, plus one
};

// METIS wants every edge in both directions and no loops. Parallel edges are kept: they weigh.
template <VertexId V>
MetisGraph symmetric_copy(const Csr<V>& graph) {
  const auto limit = static_cast<std::uint64_t>(std::numeric_limits<idx_t>::max());
  const std::uint64_t n = graph.vertices();
  require(n < limit && graph.edges() < limit / 2,
          "METIS takes at most {} vertices and edges, but the graph has {} and {}; "
          "use --partition edges",
          limit, n, graph.edges());
  require_memory((2 * graph.edges() + 2 * n) * sizeof(idx_t), "the graph's copy for METIS");

  const auto each_edge = [&](auto&& take) {
    for (std::uint64_t i = 0; i < n; ++i)
      for (const V j : graph.row(i))
        if (j != i) take(i, std::uint64_t{j});
  };
  MetisGraph copy{Buffer<idx_t>(n + 1, 0), {}, Buffer<idx_t>(n)};
  each_edge([&](std::uint64_t i, std::uint64_t j) {
    ++copy.offsets[i + 1];
    ++copy.offsets[j + 1];
  });
  for (std::uint64_t i = 0; i < n; ++i) copy.offsets[i + 1] += copy.offsets[i];
  copy.neighbours = Buffer<idx_t>(static_cast<std::size_t>(copy.offsets[n]));
  std::vector<idx_t> cursor(copy.offsets.begin(), copy.offsets.end() - 1);
  each_edge([&](std::uint64_t i, std::uint64_t j) {
    copy.neighbours[static_cast<std::size_t>(cursor[i]++)] = static_cast<idx_t>(j);
    copy.neighbours[static_cast<std::size_t>(cursor[j]++)] = static_cast<idx_t>(i);
  });
  for (std::uint64_t i = 0; i < n; ++i)
    copy.vertex_weights[i] = static_cast<idx_t>(graph.degree(i) + 1);
  return copy;
}

}  // namespace

Partition partition_by_metis(const AnyCsr& any, int parts, std::uint64_t seed) {
  const std::uint64_t vertices = vertex_count(any);
  // METIS does not promise anything for fewer vertices than parts, or for one part.
  if (parts == 1 || vertices <= static_cast<std::uint64_t>(parts))
    return partition_by_vertices(vertices, parts);
  MetisGraph graph = std::visit([](const auto& csr) { return symmetric_copy(csr); }, any);

  auto n = static_cast<idx_t>(vertices), constraints = idx_t{1}, k = static_cast<idx_t>(parts);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed & 0x7fffffff);
  idx_t cut = 0;
  Buffer<idx_t> part(vertices);
  const int status = METIS_PartGraphKway(
      &n, &constraints, graph.offsets.data(), graph.neighbours.data(), graph.vertex_weights.data(),
      nullptr, nullptr, &k, nullptr, nullptr, options, &cut, part.data());
  require(status == METIS_OK, "METIS failed with status {} on {} vertices in {} parts", status,
          vertices, parts);

  Buffer<std::uint32_t> owner(vertices);
  for (std::uint64_t v = 0; v < vertices; ++v) owner[v] = static_cast<std::uint32_t>(part[v]);
  return Partition::of_owners(parts, std::move(owner));
}

}  // namespace plait
