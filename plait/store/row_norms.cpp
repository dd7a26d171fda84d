#include "plait/store/row_norms.h"

#include <algorithm>
#include <cstring>

#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kRowGrain = 256;

}  // namespace

std::vector<double> norm_sums(const NormLimit& limit, std::span<const Slot> rows, const float* x,
                              std::uint64_t columns) {
  std::vector<double> sums(rows.size());
  parallel_blocks(rows.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k)
      for (std::uint64_t c = 0; c < columns; ++c)
        sums[k] = limit.join(sums[k], limit.power(double{x[rows[k] * columns + c]}));
  });
  return sums;
}

void limit_norms(const NormLimit& limit, std::span<const Slot> rows, std::span<const double> sums,
                 float* x, std::uint64_t columns) {
  parallel_blocks(rows.size(), kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const double factor = limit.factor(sums[k]);
      for (std::uint64_t c = 0; factor != 1 && c < columns; ++c)
        x[rows[k] * columns + c] *= static_cast<float>(factor);
    }
  });
}

void join_norm_sums(const NormLimit& limit, std::span<const std::vector<std::byte>> parts,
                    std::span<double> mine) {
  std::ranges::fill(mine, 0.0);
  std::vector<double> part(mine.size());
  for (const std::vector<std::byte>& bytes : parts) {
    if (!part.empty()) std::memcpy(part.data(), bytes.data(), mine.size_bytes());
    for (std::size_t k = 0; k < mine.size(); ++k) mine[k] = limit.join(mine[k], part[k]);
  }
}

}  // namespace plait
