// Initial weights, keyed by their place in the model rather than by the time when they are drawn:
// the same for every number of ranks, every partition and every thread count.
#pragma once

#include <cstdint>
#include <span>

namespace plait {

// Fills `values` with numbers uniform in +-bound. `tensor` numbers the weight among the weights of
// the model.
void fill_uniform(std::uint64_t seed, std::uint32_t tensor, double bound, std::span<float> values);

// Returns sqrt(6 / (in + out)) (Glorot and Bengio, 2010).
double glorot_bound(std::int64_t in, std::int64_t out);

}  // namespace plait
