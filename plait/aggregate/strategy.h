// What a strategy is, and what the strategies share. Internal to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plait/aggregate/aggregate.h"
#include "plait/kernels/spmm.h"

namespace plait {

// Own rows on their way to the edges that read them.
struct OwnRows {
  const float* x;
  const float* pre;  // a factor a row, or null
  std::uint64_t width;
};
// `count` of them, scaled, `stride` floats apart.
void scale_rows(const OwnRows& rows, std::uint64_t count, float* out, std::uint64_t stride);

// Throws UsageError if there is no room for rows of `width`, DoesNotFitError if there is none at
// all since a reserve() that failed.
void require_room(std::uint64_t width, std::uint64_t planned, bool lost);

class StrategyRun {
 public:
  virtual ~StrategyRun() = default;
  // Own rows already stand in the first slots of `rows`, `stride` floats apart, and are seen by all
  // ranks. Moves what the strategy moves, and says where the rows of all slots then stand.
  virtual RowSource gather(std::uint64_t stride, SymmetricRows& rows, AggregateCost& cost) = 0;
};

// Copies the rows of the halo, in its order, from where their owners have put them in shared
// memory, `stride` floats apart there and here.
void pull_halo(const Halo& halo, std::uint64_t stride, const SymmetricRows& rows, float* to);

// Counts the bytes that came: `rows[p]` rows of `stride` floats from each rank p.
inline void count_fetched(const std::vector<std::uint64_t>& rows, std::uint64_t stride,
                          AggregateCost& cost) {
  cost.fetched_from.resize(rows.size());
  for (std::size_t p = 0; p < rows.size(); ++p) {
    const std::uint64_t bytes = rows[p] * stride * sizeof(float);
    cost.fetched_from[p] += bytes;
    cost.bytes_fetched += bytes;
  }
}

// `shard` is the one on which the strategy will run. Collective.
std::unique_ptr<StrategyRun> make_fetch_strategy(World& world, const Shard& shard);
std::unique_ptr<StrategyRun> make_get_strategy(World& world, const Shard& shard);

}  // namespace plait
