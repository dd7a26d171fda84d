#include "plait/embedding/id_weights.h"

#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kWeightsGrain = 64;

// Sums in lanes of fixed columns, which compilers may put into one register.
template <class T>
float product_of(const T* a, const float* b, std::uint64_t count) {
  constexpr std::uint64_t kLanes = 16;
  float sums[kLanes] = {};
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::uint64_t k = 0; k < kLanes; ++k) sums[k] += widened(a[i + k]) * b[i + k];
  for (std::uint64_t k = 0; i + k < count; ++k) sums[k] += widened(a[i + k]) * b[i + k];
  for (std::uint64_t half = kLanes / 2; half > 0; half /= 2)
    for (std::uint64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  return sums[0];
}

template <class T>
void multiply(const RowProducts& p) {
  const T* const rows = static_cast<const T*>(p.piece.at);
  const std::uint64_t columns = p.piece.columns;
  const std::uint64_t first = p.t * p.bags.per_table;
  parallel_blocks(p.bags.per_table, kWeightsGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b)
      for (EdgeOffset e = p.bags.offsets[first + b]; e < p.bags.offsets[first + b + 1]; ++e) {
        std::uint64_t row = p.bags.ids[e];
        if (p.places != nullptr) {
          const RowPlace place = place_of(*p.places, p.places->starts, row);
          if (static_cast<int>(place.rank) != p.rank) continue;
          row = place.row;
        }
        p.out[e] = columns == 0
                       ? 0.0f
                       : product_of(rows + row * columns, p.gradients + b * p.stride, columns);
      }
  });
}

}  // namespace

void multiply_rows(const RowProducts& p) {
  with_number(p.piece.type, [&]<class T>(T) { multiply<T>(p); });
}

void collect_products(const GivenProducts& p, float* out) {
  parallel_blocks(p.given.count(), kWeightsGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t bag = begin; bag < end; ++bag) {
      const std::size_t t = bag / p.bags.per_table;
      EdgeOffset e = p.bags.offsets[bag];
      for (std::uint64_t i = p.given.begin_of(bag); i < p.given.begin_of(bag + 1); ++i) {
        out[i] = 0;
        if (p.given.ids[i] == p.tables.padding[t]) continue;
        for (std::uint64_t share = 0; share < p.shares[t]; ++share)
          out[i] += p.products[share * p.size + e];
        ++e;
      }
    }
  });
}

}  // namespace plait
