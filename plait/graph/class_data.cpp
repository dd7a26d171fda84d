#include "plait/graph/class_data.h"

#include <cmath>
#include <vector>

#include "plait/base/parallel.h"
#include "plait/base/random.h"
#include "plait/base/row_grain.h"
#include "plait/graph/generate.h"

namespace plait {
namespace {

// The upper half of a counter names the kind of number that is drawn.
constexpr std::uint64_t kMeanStream = std::uint64_t{19} << 56;
constexpr std::uint64_t kNoiseStream = std::uint64_t{20} << 56;
constexpr std::uint64_t kSplitStream = std::uint64_t{22} << 56;
constexpr std::uint64_t kLabelStream = std::uint64_t{24} << 56;

constexpr double kLabelShare = 0.3;  // of the other labels that a class has

// Returns a nearly normal number of deviation 1: the sum of eight uniform numbers of 16 bits. The
// sum is exact up to one rounding.
float normal(const Philox::Block& random) {
  static const auto scale = static_cast<float>(1 / std::sqrt(8 * (0x1p32 - 1) / 12));
  std::int32_t sum = 0;
  for (const std::uint32_t bits : random)
    sum += static_cast<std::int32_t>((bits & 0xffff) + (bits >> 16));
  return static_cast<float>(sum - 4 * 0xffff) * scale;
}

Buffer<float> class_means(const ClassData& data) {
  const Philox philox(data.seed);
  const auto classes = static_cast<std::uint64_t>(data.classes);
  Buffer<float> means(classes * data.width);
  for (std::uint64_t c = 0; c < classes; ++c) {
    float* const mean = means.data() + c * data.width;
    double norm = 0;
    for (std::uint64_t j = 0; j < data.width; ++j) {
      mean[j] = normal(philox(c << 32 | j, kMeanStream));
      norm += double{mean[j]} * mean[j];
    }
    for (std::uint64_t j = 0; j < data.width; ++j)
      mean[j] = static_cast<float>(mean[j] / std::sqrt(norm));
  }
  return means;
}

}  // namespace

Features class_features(const ClassData& data, std::span<const std::int32_t> classes) {
  const Buffer<float> means = class_means(data);
  const Philox philox(data.seed);
  const auto noise = static_cast<float>(data.noise);
  const std::uint64_t width = data.width;
  Buffer<float> values(classes.size() * width);
  parallel_blocks(classes.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v) {
      const float* const mean = means.data() + static_cast<std::uint64_t>(classes[v]) * width;
      for (std::uint64_t j = 0; j < width; ++j)
        values[v * width + j] = mean[j] + noise * normal(philox(v, kNoiseStream | j));
    }
  });
  Features features;
  features.rows = classes.size();
  features.width = width;
  features.f32 = std::move(values);
  return features;
}

Buffer<std::uint8_t> class_label_sets(const ClassData& data,
                                      std::span<const std::int32_t> classes) {
  const Philox philox(data.seed);
  const auto labels = static_cast<std::uint64_t>(data.classes);
  Buffer<std::uint8_t> of_class(labels * labels);
  for (std::uint64_t c = 0; c < labels; ++c)
    for (std::uint64_t k = 0; k < labels; ++k) {
      const Philox::Block random = philox(c << 32 | k, kLabelStream);
      of_class[c * labels + k] = c == k || uniform_double(random[0], random[1]) < kLabelShare;
    }
  Buffer<std::uint8_t> sets(classes.size() * labels);
  parallel_blocks(classes.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t v = begin; v < end; ++v)
      for (std::uint64_t k = 0; k < labels; ++k)
        sets[v * labels + k] = of_class[static_cast<std::uint64_t>(classes[v]) * labels + k];
  });
  return sets;
}

Buffer<Split> class_splits(const ClassData& data, std::span<const std::int32_t> classes) {
  Buffer<Split> splits(classes.size(), Split::test);
  std::vector<std::uint64_t> seen(static_cast<std::size_t>(data.classes), 0);
  const Permutation order(classes.size(), data.seed, kSplitStream);
  for (std::uint64_t i = 0; i < classes.size(); ++i) {
    const std::uint64_t v = order(i);
    const std::uint64_t rank = seen[static_cast<std::size_t>(classes[v])]++;
    if (rank < data.train_per_class)
      splits[v] = Split::train;
    else if (rank - data.train_per_class < data.validation_per_class)
      splits[v] = Split::validation;
  }
  return splits;
}

}  // namespace plait
