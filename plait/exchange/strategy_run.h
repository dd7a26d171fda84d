// The interface of strategies on the CPU, and functions that they share. Internal to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plait/exchange/exchange.h"
#include "plait/symmetric/rows.h"

namespace plait {

// Own rows on their way to the edges that read them.
struct OwnRows {
  const float* x;
  const float* pre;  // one factor per row, or null
  std::uint64_t width;
};
// Writes the first `count` rows, scaled, to `out`, where they stand `stride` floats apart. All
// threads work.
void scale_rows(const OwnRows& rows, std::uint64_t count, float* out, std::uint64_t stride);

// Throws UsageError if `width` is more than the `planned` floats, DoesNotFitError if a failed
// reserve() has left no room at all (`lost`).
void require_room(std::uint64_t width, std::uint64_t planned, bool lost);

// A strategy on one shard.
class StrategyRun {
 public:
  virtual ~StrategyRun() = default;
  // Collective. Own rows already stand in the first slots of `rows`, `stride` floats apart, and all
  // ranks see them. Moves the rows that the strategy moves, adds to `cost`, and returns where the
  // rows of all slots then stand.
  virtual RowSource gather(std::uint64_t stride, SymmetricRows& rows, ExchangeCost& cost) = 0;
};

// Copies the rows of the halo, in the halo's order, to `to`. Reads them in the shared memory of
// their owners. Rows are `stride` floats apart in both places.
void pull_halo(const Halo& halo, std::uint64_t stride, const SymmetricRows& rows, float* to);

// Counts the bytes that arrived, and returns their sum: `rows[p]` rows of `row_bytes` from each
// rank p.
inline std::uint64_t count_fetched(const std::vector<std::uint64_t>& rows, std::uint64_t row_bytes,
                                   ExchangeCost& cost) {
  cost.fetched_from.resize(rows.size());
  const std::uint64_t before = cost.bytes_fetched;
  for (std::size_t p = 0; p < rows.size(); ++p) {
    const std::uint64_t bytes = rows[p] * row_bytes;
    cost.fetched_from[p] += bytes;
    cost.bytes_fetched += bytes;
  }
  return cost.bytes_fetched - before;
}

// Collective. Make `bulk` or `replicate` (the shard's halo tells which), and `get`. The shard must
// outlive the strategy. `wire`: the type in which rows cross. `get` throws UsageError if ranks are
// on several hosts.
std::unique_ptr<StrategyRun> make_fetch_strategy(World& world, const Shard& shard, DType wire);
std::unique_ptr<StrategyRun> make_get_strategy(World& world, const Shard& shard);

}  // namespace plait
