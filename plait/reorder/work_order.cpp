#include "plait/reorder/work_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plait/communities/clusters.h"

namespace plait {
namespace {

// Returns how many distinct rows the samples of an order read, added over the samples.
template <VertexId V>
std::uint64_t distinct_reads(std::span<const EdgeOffset> begin, std::span<const EdgeOffset> end,
                             const V* columns, std::span<const std::uint32_t> order) {
  const std::uint64_t blocks = order.size() / kReadBlock, samples = std::min(blocks, kReadBlocks);
  std::uint64_t distinct = 0;
  std::vector<V> reads;
  for (std::uint64_t s = 0; s < samples; ++s) {
    reads.clear();
    for (const std::uint32_t row : order.subspan(s * blocks / samples * kReadBlock, kReadBlock))
      reads.insert(reads.end(), columns + begin[row],
                   columns + std::min(begin[row] + kReadsOfRow, end[row]));
    std::ranges::sort(reads);
    distinct += static_cast<std::uint64_t>(std::unique(reads.begin(), reads.end()) - reads.begin());
  }
  return distinct;
}

}  // namespace

template <VertexId V>
std::vector<std::uint32_t> order_of_work(std::span<const EdgeOffset> begin,
                                         std::span<const EdgeOffset> end, const V* columns) {
  std::vector<std::uint32_t> labels = find_clusters(begin, end, columns), order(begin.size());
  std::iota(order.begin(), order.end(), 0u);
  const std::uint64_t by_ids = distinct_reads(begin, end, columns, order);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t row) {
    return std::pair{labels[row], ~static_cast<std::uint32_t>(end[row] - begin[row])};
  });
  const std::uint64_t by_clusters = distinct_reads(begin, end, columns, order);
  if (static_cast<double>(by_ids) < kFewerReads * static_cast<double>(by_clusters))
    for (std::size_t row = 0; row < labels.size(); ++row)
      labels[row] = static_cast<std::uint32_t>(row / kRowsTogether);
  return labels;
}

template std::vector<std::uint32_t> order_of_work(std::span<const EdgeOffset>,
                                                  std::span<const EdgeOffset>,
                                                  const std::uint32_t*);
template std::vector<std::uint32_t> order_of_work(std::span<const EdgeOffset>,
                                                  std::span<const EdgeOffset>,
                                                  const std::uint64_t*);

}  // namespace plait
