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
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const Philox::Block words = philox(i / 4, tensor);
    for (std::size_t k = 0; k < 4 && i + k < values.size(); ++k)
      values[i + k] = (2 * uniform_float(words[k]) - 1) * static_cast<float>(bound);
  }
}

double glorot_bound(std::int64_t in, std::int64_t out) {
  return std::sqrt(6.0 / static_cast<double>(in + out));
}

}  // namespace plait
