#include <algorithm>
#include <bit>

#include "plait/reorder/methods.h"
#include "plait/reorder/metis_graph.h"

namespace plait {
namespace {

// A part has at least so many vertices; and there are at most so many parts.
constexpr std::uint64_t kLeastPart = 256, kMostParts = 256;

}  // namespace

Reordering order_by_metis(const ReorderInput& input) {
  const std::uint64_t n = vertex_count(input.graph);
  const std::uint64_t parts =
      std::bit_floor(std::clamp(n / kLeastPart, std::uint64_t{1}, kMostParts));
  if (parts == 1) return {};
  // Parts that are halves of one follow each other.
  const Buffer<idx_t> part = metis_parts(
      METIS_PartGraphRecursive, metis_graph(input.graph, "use another order"), parts, input.seed);
  std::vector<std::uint64_t> at(parts + 1);
  for (const idx_t p : part) ++at[static_cast<std::size_t>(p) + 1];
  for (std::uint64_t p = 0; p < parts; ++p) at[p + 1] += at[p];
  Reordering found{.order = Buffer<std::uint64_t>(n)};
  for (std::uint64_t v = 0; v < n; ++v) found.order[at[static_cast<std::size_t>(part[v])]++] = v;
  return found;
}

}  // namespace plait
