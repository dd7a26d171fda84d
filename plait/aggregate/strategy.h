// What a strategy is, and what the strategies share. Internal to this room.
#pragma once

#include <memory>

#include "plait/aggregate/aggregate.h"
#include "plait/kernels/spmm.h"

namespace plait {

// One aggregation on one shard.
struct Product {
  const Shard& shard;
  const float* pre;   // or null
  const float* post;  // or null
  bool weighted;
  const float* x;
  float* y;
  std::uint64_t width;
};

class StrategyRun {
 public:
  virtual ~StrategyRun() = default;
  // Own rows already stand in the first slots of `rows`, scaled, and are seen by all ranks.
  virtual void run(const Product& product, SymmetricRows& rows, AggregateCost& cost) = 0;
};

// The kernel's arguments for all edges of the shard, reading slots at `base`.
SpmmArgs spmm_args(const Product& product, const float* base);

// Copies the rows of the halo, in its order, from where their owners have put them in shared
// memory.
void pull_halo(const Halo& halo, std::uint64_t width, const SymmetricRows& rows, float* to);

// `shard` is the one on which the strategy will run. Collective.
std::unique_ptr<StrategyRun> make_fetch_strategy(World& world, const Shard& shard);
std::unique_ptr<StrategyRun> make_get_strategy(World& world, const Shard& shard);

}  // namespace plait
