#include "plait/communities/clusters.h"

#include <algorithm>
#include <numeric>

#include "plait/base/parallel.h"
#include "plait/communities/votes.h"

namespace plait {

template <VertexId V>
std::vector<std::uint32_t> find_clusters(std::span<const EdgeOffset> begin,
                                         std::span<const EdgeOffset> end, const V* columns,
                                         int rounds) {
  std::vector<std::uint32_t> labels(begin.size()), next(begin.size());
  std::iota(labels.begin(), labels.end(), 0u);
  const auto row_of = [&](std::size_t i) {
    return std::span(columns + begin[i], columns + end[i]);
  };
  for (std::uint32_t round = 1; round <= static_cast<std::uint32_t>(rounds); ++round) {
    parallel_blocks(labels.size(), 1024, [&](std::size_t from, std::size_t to) {
      ask_each(
          from, to, round, row_of,
          [&](V neighbour) { return neighbour < labels.size() ? labels[neighbour] : Votes::kNone; },
          [&](std::size_t i, const Votes& votes) { next[i] = votes.heaviest(labels[i], round); });
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
