// Partitions for which the offsets of the graph, or its number of vertices, are enough.
#include <algorithm>

#include "plait/base/parallel.h"
#include "plait/base/random.h"
#include "plait/partition/partition.h"

namespace plait {

// The share is taken of the edges that are left, so that one hub that overfills a part does not
// starve the last.
std::vector<std::uint64_t> even_cuts(std::span<const EdgeOffset> offsets, int parts) {
  const std::uint64_t rows = offsets.size() - 1;
  std::vector<std::uint64_t> starts{0};
  for (int part = 0; part < parts; ++part) {
    const std::uint64_t first = starts.back();
    const std::uint64_t left = offsets.back() - offsets[first];
    const auto share = static_cast<std::uint64_t>(parts - part);
    const EdgeOffset target = offsets[first] + (left + share - 1) / share;
    const auto bound = std::lower_bound(offsets.begin() + static_cast<std::ptrdiff_t>(first),
                                        offsets.end(), target);
    auto last = static_cast<std::uint64_t>(bound - offsets.begin());
    // Takes the nearer of the two cuts around the target.
    if (last > first + 1 && target - offsets[last - 1] < offsets[last] - target) --last;
    starts.push_back(part + 1 == parts ? rows : std::min(last, rows));
  }
  return starts;
}

Partition partition_by_edges(const AnyCsr& any, int parts) {
  return std::visit(
      [&](const auto& graph) {
        if (graph.edges() == 0) return partition_by_vertices(graph.vertices(), parts);
        return Partition::contiguous(even_cuts(graph.offsets.span(), parts));
      },
      any);
}

Partition partition_by_vertices(std::uint64_t vertices, int parts) {
  std::vector<std::uint64_t> starts;
  for (std::uint64_t part = 0; part <= static_cast<std::uint64_t>(parts); ++part)
    starts.push_back(static_cast<std::uint64_t>(static_cast<unsigned __int128>(vertices) * part /
                                                static_cast<std::uint64_t>(parts)));
  return Partition::contiguous(std::move(starts));
}

Partition partition_by_hash(std::uint64_t vertices, int parts,
                            std::span<const std::uint64_t> numbers) {
  constexpr Philox hash(0x9A171A1Du);
  Buffer<std::uint32_t> owner(vertices);
  parallel_blocks(vertices, std::size_t{1} << 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v) {
      const auto bits = hash(numbers.empty() ? v : numbers[v]);
      owner[v] = static_cast<std::uint32_t>(
          uniform_below(static_cast<std::uint64_t>(parts), bits[0], bits[1]));
    }
  });
  return Partition::of_owners(parts, std::move(owner));
}

}  // namespace plait
