#include "plait/reorder/clusters.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "plait/base/parallel.h"
#include "plait/reorder/clusters_rule.h"

namespace plait {
namespace {

// The label that row `row` takes in a round.
template <VertexId V>
std::uint32_t vote(std::span<const V> neighbours, std::uint32_t row, std::uint32_t round,
                   std::span<const std::uint32_t> labels) {
  std::array<std::uint32_t, kClusterSample> seen;
  std::size_t count = 0;
  const EdgeOffset degree = neighbours.size();
  for (std::uint32_t k = 0; k < std::min<EdgeOffset>(degree, kClusterSample); ++k) {
    const V neighbour = neighbours[cluster_sample(k, degree, row, round)];
    if (neighbour < labels.size()) seen[count++] = labels[neighbour];
  }
  std::uint32_t best = labels[row];
  std::uint64_t most = 0;
  std::sort(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = 0, next; i < count; i = next) {
    next = i + 1;
    while (next < count && seen[next] == seen[i]) ++next;
    const auto votes = static_cast<std::uint32_t>(next - i) + (seen[i] == labels[row]);
    const std::uint64_t weight = cluster_weight(votes, seen[i], round);
    if (weight > most) most = weight, best = seen[i];
  }
  return best;
}

}  // namespace

template <VertexId V>
std::vector<std::uint32_t> find_clusters(std::span<const EdgeOffset> begin,
                                         std::span<const EdgeOffset> end, const V* columns,
                                         int rounds) {
  std::vector<std::uint32_t> labels(begin.size()), next(begin.size());
  std::iota(labels.begin(), labels.end(), 0u);
  for (int round = 1; round <= rounds; ++round) {
    parallel_blocks(labels.size(), 1024, [&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i)
        next[i] = vote<V>({columns + begin[i], columns + end[i]}, static_cast<std::uint32_t>(i),
                          static_cast<std::uint32_t>(round), labels);
    });
    labels.swap(next);
  }
  return labels;
}

template std::vector<std::uint32_t> find_clusters(std::span<const EdgeOffset>,
                                                  std::span<const EdgeOffset>, const std::uint32_t*,
                                                  int);
template std::vector<std::uint32_t> find_clusters(std::span<const EdgeOffset>,
                                                  std::span<const EdgeOffset>, const std::uint64_t*,
                                                  int);

}  // namespace plait
