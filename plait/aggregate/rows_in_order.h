// Rows of all ranks on rank 0, for results that it writes. No other rank takes memory for them.
#pragma once

#include <cstdint>
#include <span>

#include "plait/base/array.h"
#include "plait/partition/partition.h"
#include "plait/world/world.h"

namespace plait {

// Collective. Returns on rank 0 the values that ranks give, one rank's after another's; nothing on
// the others. Sizes may differ. T: float, double or std::int64_t.
template <class T>
Buffer<T> values_by_rank(World& world, std::span<const T> own);

// Collective. Returns on rank 0 the rows of all vertices in the order of their numbers
// (Partition::number), nothing on the others. `own`: own rows x width.
template <class T>
Buffer<T> rows_in_order(World& world, const Partition& partition, std::span<const T> own,
                        std::uint64_t width);

// Tells how often rank 0 holds a row for rows_in_order(): once, or twice if rows must be put in
// order.
std::uint64_t copies_in_order(const Partition& partition);

}  // namespace plait
