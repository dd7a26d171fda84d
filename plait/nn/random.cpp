#include "plait/nn/random.h"

#include <cmath>

#include "plait/base/random.h"

namespace plait {
namespace {

// Keeps the numbers apart from others that are drawn with the same seed.
constexpr std::uint64_t kInitStream = 0x1417000000000002u;

}  // namespace

void fill_uniform(std::uint64_t seed, std::uint32_t tensor, double bound, std::span<float> values) {
  const Philox philox(seed ^ kInitStream);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = (2 * uniform_float(philox(i / 4, tensor)[i % 4]) - 1) * static_cast<float>(bound);
}

double glorot_bound(std::int64_t in, std::int64_t out) {
  return std::sqrt(6.0 / static_cast<double>(in + out));
}

}  // namespace plait
