// Initial weights, keyed by what they are for rather than by when they are drawn: the same for
// every number of ranks, every partition and every thread count.
#pragma once

#include <cstdint>
#include <span>

namespace plait {

// Uniform in +-bound. `tensor` numbers the weight among those of the model.
void fill_uniform(std::uint64_t seed, std::uint32_t tensor, double bound, std::span<float> values);

// sqrt(6 / (in + out)) (Glorot and Bengio, 2010).
double glorot_bound(std::int64_t in, std::int64_t out);

}  // namespace plait
