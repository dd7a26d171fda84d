#include "plait/nn/random.h"

#include <cmath>

#include "plait/base/error.h"

namespace plait {
namespace {

// Streams of one seed that must not meet.
constexpr std::uint64_t kDropoutStream = 0xD80D000000000001u;
constexpr std::uint64_t kInitStream = 0x1417000000000002u;

constexpr std::uint64_t high_counter(std::uint32_t epoch, std::uint32_t layer,
                                     std::uint32_t column) {
  return std::uint64_t{epoch & 0xffffffu} << 40 | std::uint64_t{layer & 0xffu} << 32 | column / 4;
}

}  // namespace

Dropout::Dropout(std::uint64_t seed, float p)
    : philox_(seed ^ kDropoutStream), p_(p), scale_(1.0f / (1.0f - p)) {
  require<UsageError>(p >= 0 && p < 1, "dropout {} is outside [0, 1)", p);
}

void Dropout::apply(std::uint64_t vertex, std::uint32_t epoch, std::uint32_t layer,
                    std::span<float> row) const {
  for (std::size_t c = 0; c < row.size(); c += 4) {
    const auto bits = philox_(vertex, high_counter(epoch, layer, static_cast<std::uint32_t>(c)));
    for (std::size_t k = 0; k < 4 && c + k < row.size(); ++k) row[c + k] *= scale_of(bits[k]);
  }
}

void Dropout::apply(std::uint64_t vertex, std::uint32_t epoch, std::uint32_t layer,
                    std::span<const std::uint32_t> columns, std::span<float> values) const {
  Philox::Block bits{};
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (k == 0 || columns[k] / 4 != columns[k - 1] / 4)
      bits = philox_(vertex, high_counter(epoch, layer, columns[k]));
    values[k] *= scale_of(bits[columns[k] % 4]);
  }
}

void glorot_uniform(std::uint64_t seed, std::uint32_t tensor, std::int64_t in, std::int64_t out,
                    std::span<float> values) {
  const Philox philox(seed ^ kInitStream);
  const auto bound = static_cast<float>(std::sqrt(6.0 / static_cast<double>(in + out)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = (2 * uniform_float(philox(i / 4, tensor)[i % 4]) - 1) * bound;
}

}  // namespace plait
