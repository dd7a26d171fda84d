// The random numbers of one vertex, one after the other: the same as from VertexDraws::below(), but
// a block of the generator is made once for all its numbers.
#pragma once

#include <algorithm>

#include "plait/sample/draw.h"

namespace plait {

// Calls take(i, number) for i = 0 .. count - 1 with draws.below(bound(i), i, population).
template <class Bound, class Take>
void for_numbers(const VertexDraws& draws, std::uint64_t population, std::uint64_t count,
                 Bound bound, Take take) {
  const std::uint64_t per_block = VertexDraws::numbers_per_block(population);
  for (std::uint64_t begin = 0; begin < count; begin += per_block) {
    const Philox::Block words = draws.block(begin / per_block);
    const std::uint64_t end = std::min(count, begin + per_block);
    for (std::uint64_t i = begin; i < end; ++i)
      take(i, VertexDraws::number(words, bound(i), i - begin, population));
  }
}

}  // namespace plait
