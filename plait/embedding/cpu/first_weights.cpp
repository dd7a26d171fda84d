#include "plait/embedding/first_weights.h"

#include "plait/base/parallel.h"

namespace plait {

void fill_first_weights(const FirstWeights& of) {
  constexpr std::size_t kGrain = 256;  // rows of a block
  with_number(of.type, [&]<class T>(T) {
    parallel_blocks(of.rows, kGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t row = begin; row < end; ++row)
        for (std::uint64_t k = 0; k < of.columns; ++k)
          static_cast<T*>(of.weights)[row * of.columns + k] = rounded<T>(first_weight(of, row, k));
    });
  });
}

}  // namespace plait
