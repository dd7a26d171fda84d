// A thread takes blocks of rows. Loops over a row have no branches, so that the compiler makes
// vectors of them.
#include "plait/table/store_rows.h"

#include <algorithm>
#include <cstring>

#include "plait/base/parallel.h"
#include "plait/table/convert.h"

namespace plait {
namespace {

constexpr std::size_t kStoreRowsGrain = 256;  // rows of a block

float float_at(const std::byte* row, std::uint64_t k) {
  float value = 0;
  std::memcpy(&value, row + k * sizeof(value), sizeof(value));
  return value;
}

template <class Storage>
void store_row(const std::byte* row, std::uint64_t width, std::byte* out) {
  float scale = 1;
  if constexpr (kHasScale<Storage>) {
    std::uint32_t greatest = 0;
    for (std::uint64_t k = 0; k < width; ++k)
      greatest =
          std::max(greatest, __builtin_bit_cast(std::uint32_t, float_at(row, k)) & ~kSignBit);
    scale = scale_of<Storage>(greatest);
    std::memcpy(out + scale_offset(width), &scale, sizeof(scale));
  }
  for (std::uint64_t k = 0; k < width; ++k) {
    const auto code = encoded<Storage>(float_at(row, k), scale);
    std::memcpy(out + k * sizeof(code), &code, sizeof(code));
  }
}

void store_row(const std::byte* row, DType type, std::uint64_t width, std::byte* out) {
  if (is_copied(type))
    std::memcpy(out, row, width * size_of(type));
  else
    with_storage(type, [&]<class S>(S) { store_row<S>(row, width, out); });
}

}  // namespace

void store_rows(const StoreRows& a) {
  if (a.width == 0) return;
  parallel_blocks(a.count, kStoreRowsGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      store_row(a.rows + i * a.rows_stride, a.type, a.width, a.out + i * a.out_stride);
  });
}

}  // namespace plait
