#include <algorithm>
#include <bit>

#include "plait/base/error.h"
#include "plait/reorder/methods.h"
#include "plait/reorder/metis_graph.h"

namespace plait {
namespace {

// A part has at least so many vertices; and there are at most so many parts.
constexpr std::uint64_t kLeastPart = 256, kMostParts = 256;

// Returns the part of each vertex: those that are halves of one follow each other.
std::vector<std::uint32_t> parts_of(MetisGraph graph, std::uint64_t parts, std::uint64_t seed) {
  auto n = static_cast<idx_t>(graph.vertex_weights.size());
  auto constraints = idx_t{1}, k = static_cast<idx_t>(parts);
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed & 0x7fffffff);
  idx_t cut = 0;
  Buffer<idx_t> part(graph.vertex_weights.size());
  const int status = METIS_PartGraphRecursive(
      &n, &constraints, graph.offsets.data(), graph.neighbours.data(), graph.vertex_weights.data(),
      nullptr, nullptr, &k, nullptr, nullptr, options, &cut, part.data());
  require<DoesNotFitError>(status != METIS_ERROR_MEMORY,
                           "METIS has not enough memory for {} vertices", n);
  require(status == METIS_OK, "METIS failed with status {} on {} vertices in {} parts", status, n,
          parts);
  return {part.begin(), part.end()};
}

}  // namespace

Reordering order_by_metis(const ReorderInput& input) {
  const std::uint64_t n = vertex_count(input.graph);
  const std::uint64_t parts =
      std::bit_floor(std::clamp(n / kLeastPart, std::uint64_t{1}, kMostParts));
  if (parts == 1) return {};
  const std::vector<std::uint32_t> part =
      parts_of(metis_graph(input.graph, "use another order"), parts, input.seed);
  std::vector<std::uint64_t> at(parts + 1);
  for (const std::uint32_t p : part) ++at[p + 1];
  for (std::uint64_t p = 0; p < parts; ++p) at[p + 1] += at[p];
  Reordering found{.order = Buffer<std::uint64_t>(n)};
  for (std::uint64_t v = 0; v < n; ++v) found.order[at[part[v]]++] = v;
  return found;
}

}  // namespace plait
