#include "plait/graph/folds.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

#include "plait/base/error.h"
#include "plait/base/random.h"

namespace plait {

Array<Split> make_folds(const Dataset& dataset, Folds folds, std::uint64_t seed) {
  const std::uint64_t examples = dataset.examples();
  require<UsageError>(examples >= 3,
                      "{} has too few examples to test, validate and train: {}; there must be 3",
                      dataset.name, examples);
  require<UsageError>(folds.count >= 3 && static_cast<std::uint64_t>(folds.count) <= examples,
                      "{} folds of {} examples were asked for; use 3 to {}", folds.count, examples,
                      examples);
  require<UsageError>(folds.test >= 0 && folds.test < folds.count, "fold {} is outside 0..{}",
                      folds.test, folds.count - 1);
  const Philox random(seed);
  const auto number = [&](std::uint64_t i) {
    return dataset.is_set_of_graphs() ? i : dataset.number(i);
  };
  std::vector<std::uint64_t> key(examples), order(examples);
  for (std::uint64_t i = 0; i < examples; ++i) {
    constexpr std::uint64_t kFolds = 0x666f6c6473;  // a counter that nothing else uses
    const Philox::Block block = random(number(i), kFolds);
    key[i] = std::uint64_t{block[0]} << 32 | block[1];
  }
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::ranges::sort(order, {}, [&](std::uint64_t i) {
    return std::tuple(dataset.labels.empty() ? 0 : dataset.labels[i], key[i], number(i));
  });
  Buffer<Split> splits(examples);
  for (std::uint64_t at = 0; at < examples; ++at) {
    const auto fold = static_cast<int>(at % static_cast<std::uint64_t>(folds.count));
    splits[order[at]] = fold == folds.test                       ? Split::test
                        : fold == (folds.test + 1) % folds.count ? Split::validation
                                                                 : Split::train;
  }
  return splits;
}

}  // namespace plait
