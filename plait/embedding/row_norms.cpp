#include "plait/embedding/row_norms.h"

#include <algorithm>
#include <cstring>

#include "plait/base/parallel.h"

namespace plait {
namespace {

constexpr std::size_t kNormsGrain = 256;

// Calls use(k, numbers of the piece) for each k below `count`, by all threads.
template <class Use>
void for_rows(std::size_t count, const PieceRows& piece, Use use) {
  with_number(piece.type, [&]<class T>(T) {
    parallel_blocks(count, kNormsGrain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) use(k, static_cast<T*>(piece.at));
    });
  });
}

}  // namespace

std::vector<double> norm_sums(const NormLimit& limit, std::span<const Slot> rows,
                              const PieceRows& piece) {
  std::vector<double> sums(rows.size());
  for_rows(rows.size(), piece, [&]<class T>(std::size_t k, const T* x) {
    for (std::uint64_t c = 0; c < piece.columns; ++c)
      sums[k] = limit.join(sums[k], limit.power(double{widened(x[rows[k] * piece.columns + c])}));
  });
  return sums;
}

void limit_norms(const NormLimit& limit, std::span<const Slot> rows, std::span<const double> sums,
                 const PieceRows& piece) {
  for_rows(rows.size(), piece, [&]<class T>(std::size_t k, T* x) {
    const double factor = limit.factor(sums[k]);
    T* const row = x + rows[k] * piece.columns;
    for (std::uint64_t c = 0; factor != 1 && c < piece.columns; ++c)
      row[c] = rounded<T>(widened(row[c]) * static_cast<float>(factor));
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
