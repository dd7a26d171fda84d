#include "plait/reorder/clusters.h"

#include <algorithm>
#include <numeric>

#include "plait/base/parallel.h"
#include "plait/reorder/votes.h"

namespace plait {
namespace {

// Returns the label that row `row` takes in a round.
template <VertexId V>
std::uint32_t vote(std::span<const V> neighbours, std::uint32_t row, std::uint32_t round,
                   std::span<const std::uint32_t> labels, Votes& votes) {
  Sample sample;
  sample.take(neighbours, row, round, labels);
  for (const std::uint32_t label : sample.labels()) votes.add(label);
  return votes.take_heaviest(labels[row], round);
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
      Votes votes;
      for (std::size_t i = from; i < to; ++i)
        next[i] = vote<V>({columns + begin[i], columns + end[i]}, static_cast<std::uint32_t>(i),
                          static_cast<std::uint32_t>(round), labels, votes);
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
