#include "plait/kernels/dropout.h"

#include <algorithm>
#include <cmath>

#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/kernels/cpu/philox8.h"

namespace plait {
namespace {

// Keeps the numbers apart from others that are drawn with the same seed.
constexpr std::uint64_t kDropoutStream = 0xD80D000000000001u;
constexpr std::size_t kFewColumns = 4;  // for which eight blocks at once do not pay

}  // namespace

Dropout::Dropout(std::uint64_t seed, float p)
    : philox_(seed ^ kDropoutStream), p_(p), scale_(1.0f / (1.0f - p)) {
  require<UsageError>(p >= 0 && p < 1, "dropout {} is outside [0, 1)", p);
}

void Dropout::apply(std::uint64_t vertex, std::uint32_t epoch, std::uint32_t layer,
                    std::span<float> row) const {
  std::size_t c = 0;
  for (; c + kFewColumns < row.size(); c += kPhilox8Words) {
    std::uint32_t words[kPhilox8Words];
    philox8(philox_, vertex, high(epoch, layer) | c / 4, words);
    const auto drop = [&](std::size_t columns) {
      for (std::size_t k = 0; k < columns; ++k) row[c + k] *= factor(words[k]);
    };
    if (row.size() - c >= kPhilox8Words)
      drop(kPhilox8Words);
    else
      drop(row.size() - c);
  }
  for (; c < row.size(); c += 4) {
    const auto four = numbers(vertex, epoch, layer, static_cast<std::uint32_t>(c));
    for (std::size_t k = 0; k < 4 && c + k < row.size(); ++k) row[c + k] *= factor(four[k]);
  }
}

void Dropout::apply(std::uint64_t vertex, std::uint32_t epoch, std::uint32_t layer,
                    std::span<const std::uint32_t> columns, std::span<float> values) const {
  constexpr std::size_t kAtOnce = kPhilox8Words / 4;
  std::size_t k = 0;
  for (; k + kAtOnce <= columns.size(); k += kAtOnce) {
    std::uint64_t counters[kAtOnce];
    for (std::size_t i = 0; i < kAtOnce; ++i) counters[i] = high(epoch, layer) | columns[k + i] / 4;
    std::uint32_t words[kPhilox8Words];
    philox8(philox_, vertex, counters, words);
    for (std::size_t i = 0; i < kAtOnce; ++i)
      values[k + i] *= factor(words[4 * i + columns[k + i] % 4]);
  }
  for (; k < columns.size(); ++k)
    values[k] *= factor(numbers(vertex, epoch, layer, columns[k])[columns[k] % 4]);
}

void drop_rows(const DropoutStep& step, const DropoutRows& a) {
  parallel_blocks(a.rows, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      float* const row = a.y + i * a.width;
      const float* const x = a.x + i * a.width;
      if (a.relu)
        std::transform(x, x + a.width, row, [](float value) { return value < 0 ? 0.0f : value; });
      else
        std::copy_n(x, a.width, row);
      step.dropout->apply(a.vertices[i], step.epoch, step.layer, {row, a.width});
    }
  });
}

void drop_relu_gradient(const DropReluGradient& a) {
  parallel_blocks(a.count, std::size_t{1} << 14, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      a.result[i] = a.y[i] > 0 ? a.gradient[i] * a.scale : 0.0f;
  });
}

}  // namespace plait
