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

// Writes encode(x) of each element.
template <class Encode>
void encode_row(const std::byte* row, std::uint64_t width, std::byte* out, Encode encode) {
  for (std::uint64_t k = 0; k < width; ++k) {
    const auto code = encode(float_at(row, k));
    std::memcpy(out + k * sizeof(code), &code, sizeof(code));
  }
}

template <RowForm kForm>
void scale_row(const std::byte* row, std::uint64_t width, std::byte* out) {
  std::uint32_t greatest = 0;
  for (std::uint64_t k = 0; k < width; ++k)
    greatest = std::max(greatest, __builtin_bit_cast(std::uint32_t, float_at(row, k)) & ~kSignBit);
  const float scale = scale_of(kForm, greatest);
  encode_row(row, width, out, [=](float x) { return scaled_code(kForm, x, scale); });
  std::memcpy(out + scale_offset(width), &scale, sizeof(scale));
}

void store_row(const std::byte* row, RowForm form, std::uint64_t width, std::byte* out) {
  switch (form) {
    case RowForm::bf16:
      return encode_row(row, width, out, float_to_bf16_bits);
    case RowForm::f16:
      return encode_row(row, width, out, float_to_half);
    case RowForm::int8:
      return scale_row<RowForm::int8>(row, width, out);
    case RowForm::fp8:
      return scale_row<RowForm::fp8>(row, width, out);
    default:
      std::memcpy(out, row, width * element_bytes(form));
  }
}

}  // namespace

void store_rows(const StoreRows& a) {
  if (a.width == 0) return;
  parallel_blocks(a.count, kStoreRowsGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      store_row(a.rows + i * a.rows_stride, a.form, a.width, a.out + i * a.out_stride);
  });
}

}  // namespace plait
