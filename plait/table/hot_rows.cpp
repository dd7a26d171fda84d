#include "plait/table/hot_rows.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/saturating.h"

namespace plait {
namespace {

using Skip = std::function<bool(std::uint64_t)>;

// A weight such that `above` rows have more, and at least `most` rows no less, if there are so
// many.
struct Threshold {
  std::uint64_t weight = 0, above = 0;
};

// Finds 16 bits of the weight at a time, from the highest, by counting the rows whose bits above
// are those that were found.
Threshold find_threshold(std::span<const std::uint64_t> weights, std::uint64_t most,
                         const Skip& skip) {
  constexpr int kBits = 16;
  Threshold found;
  for (int shift = 64 - kBits; shift >= 0; shift -= kBits) {
    std::vector<std::uint64_t> counts(std::size_t{1} << kBits);
    // A shift by all 64 bits is not defined.
    const std::uint64_t known = shift + kBits == 64 ? 0 : ~std::uint64_t{0} << (shift + kBits);
    for (std::uint64_t id = 0; id < weights.size(); ++id)
      if ((weights[id] & known) == found.weight && !(skip && skip(id)))
        ++counts[weights[id] >> shift & (counts.size() - 1)];
    std::uint64_t bits = counts.size() - 1;
    while (bits > 0 && found.above + counts[bits] < most) found.above += counts[bits--];
    found.weight |= bits << shift;
  }
  return found;
}

}  // namespace

Buffer<std::uint64_t> times_read(const AnyCsr& graph) {
  Buffer<std::uint64_t> times(vertex_count(graph), 0);
  std::visit(
      [&](const auto& csr) {
        constexpr std::size_t kGrain = std::size_t{1} << 16;
        parallel_blocks(csr.neighbours.size(), kGrain, [&](std::size_t begin, std::size_t end) {
          for (std::size_t e = begin; e < end; ++e)
            std::atomic_ref(times[csr.neighbours[e]]).fetch_add(1, std::memory_order_relaxed);
        });
      },
      graph);
  return times;
}

std::vector<std::uint64_t> hot_rows(std::span<const std::uint64_t> weights, std::uint64_t most,
                                    const Skip& skip) {
  std::vector<std::uint64_t> ids;
  if (most == 0) return ids;
  const Threshold threshold = find_threshold(weights, most, skip);
  std::uint64_t equal = most - threshold.above;  // rows of the threshold's weight that are taken
  for (std::uint64_t id = 0; id < weights.size(); ++id) {
    if (weights[id] == 0 || weights[id] < threshold.weight || (skip && skip(id))) continue;
    if (weights[id] == threshold.weight) {
      if (equal == 0) continue;
      --equal;
    }
    ids.push_back(id);
  }
  return ids;
}

std::vector<HotIds> hot_index(std::span<const std::uint64_t> ids, std::uint64_t rows) {
  std::vector<HotIds> index((rows + 63) / 64);
  for (std::size_t k = 0; k < ids.size(); ++k) {
    require<UsageError>(ids[k] < rows && (k == 0 || ids[k - 1] < ids[k]),
                        "hot rows ascend and are below {}, but number {} is {}", rows, k, ids[k]);
    index[ids[k] / 64].bits |= std::uint64_t{1} << ids[k] % 64;
  }
  std::uint64_t before = 0;
  for (HotIds& entry : index) {
    entry.before = before;
    before += count_bits(entry.bits);
  }
  return index;
}

std::uint64_t hot_bytes(std::uint64_t copies, std::uint64_t rows, std::uint64_t stride) {
  if (copies == 0) return 0;
  return (Bytes(copies) * stride + (rows + 63) / 64 * sizeof(HotIds)).value;
}

std::uint64_t hot_rows_that_fit(std::uint64_t bytes, std::uint64_t rows, std::uint64_t stride) {
  const std::uint64_t index = (rows + 63) / 64 * sizeof(HotIds);
  if (bytes <= index) return 0;
  return std::min(rows, (bytes - index) / std::max<std::uint64_t>(stride, 1));
}

}  // namespace plait
