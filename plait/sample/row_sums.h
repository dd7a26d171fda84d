// Sums of the weights of rows. Draws with replacement use them.
#pragma once

#include <span>

#include "plait/base/array.h"
#include "plait/sample/neighbours.h"

namespace plait {

// Tells whether a sampler draws by row_sums(). Where edges have times, each draw has sums of its
// own, over the edges that are not too late.
inline bool draws_by_row_sums(const SampleSettings& settings, const SampleValues& values) {
  return !values.weights.empty() && settings.replace && !values.timed();
}

// Returns, for each edge, the sum of the weights of its row up to this edge, added one after the
// other.
Buffer<double> row_sums(const AnyCsr& graph, std::span<const float> weights);

}  // namespace plait
