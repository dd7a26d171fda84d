// The random numbers of one vertex, one after the other: those of VertexDraws::below(), but a block
// of the generator is made once for all its numbers.
#pragma once

#include <algorithm>

#include "plait/sample/draw.h"

namespace plait {

// Calls take(i, number) for i = 0 .. count - 1 with draws.below(bound(i), i, population).
template <class Bound, class Take>
void for_numbers(const VertexDraws& draws, std::uint64_t population, std::uint64_t count,
                 Bound bound, Take take) {
  for (std::uint64_t i = 0; i < count; ++i) take(i, draws.below(bound(i), i, population));
}

}  // namespace plait
