// Initial weights, keyed by what they are for rather than by when they are drawn: the same for
// every number of ranks, every partition and every thread count.
#pragma once

#include <cstdint>
#include <span>

namespace plait {

// Glorot and Bengio (2010): uniform in +-sqrt(6 / (in + out)); values is out x in, row major.
// `tensor` numbers the weight among those of the model.
void glorot_uniform(std::uint64_t seed, std::uint32_t tensor, std::int64_t in, std::int64_t out,
                    std::span<float> values);

}  // namespace plait
