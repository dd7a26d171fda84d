// The first weights of embedding tables: normal numbers, each a function of (seed, table, row,
// column) alone, so that they do not depend on how tables are divided. They are made by the method
// of Box and Muller: its cosine gives one column, and its sine gives the next.
#pragma once

#include <cmath>
#include <cstdint>

#include "plait/base/host_device.h"
#include "plait/base/number.h"
#include "plait/base/random.h"

namespace plait {

// A piece of a table: rows of `columns` numbers without gaps. `ids`: the ids of its rows.
struct FirstWeights {
  const std::int64_t* ids = nullptr;
  std::uint64_t rows = 0, first_column = 0, columns = 0;
  std::uint64_t seed = 0, table = 0;
  void* weights = nullptr;  // numbers of `type`, rounded
  DType type = DType::f32;
};

// Returns the number at row `row` and column `k` of the piece. The GPU's may differ from the CPU's
// in the last bit.
PLAIT_HOST_DEVICE inline float first_weight(const FirstWeights& of, std::uint64_t row,
                                            std::uint64_t k) {
  constexpr double kTurn = 6.283185307179586;
  const std::uint64_t column = of.first_column + k;
  const auto words =
      Philox(of.seed)(static_cast<std::uint64_t>(of.ids[row]), of.table << 32 | column / 2);
  const double radius = std::sqrt(-2 * std::log1p(-uniform_double(words[0], words[1])));
  const double angle = kTurn * uniform_double(words[2], words[3]);
  return static_cast<float>(radius * (column % 2 == 0 ? std::cos(angle) : std::sin(angle)));
}

// Writes the weights, by all threads.
void fill_first_weights(const FirstWeights& of);

}  // namespace plait
