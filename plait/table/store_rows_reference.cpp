#include <algorithm>
#include <cstring>
#include <vector>

#include "plait/table/convert.h"
#include "plait/table/store_rows.h"

namespace plait {
namespace {

template <class T>
void put(std::byte* row, std::uint64_t offset, T value) {
  std::memcpy(row + offset, &value, sizeof(value));
}

void store_row(const std::vector<float>& x, RowForm form, std::byte* out) {
  std::uint32_t greatest = 0;
  for (const float value : x)
    greatest = std::max(greatest, __builtin_bit_cast(std::uint32_t, value) & ~kSignBit);
  const float scale = scale_of(form, greatest);
  for (std::uint64_t k = 0; k < x.size(); ++k) {
    if (form == RowForm::f32) put(out, k * 4, x[k]);
    if (form == RowForm::bf16) put(out, k * 2, float_to_bf16_bits(x[k]));
    if (form == RowForm::f16) put(out, k * 2, float_to_half(x[k]));
    if (is_scaled(form)) put(out, k, scaled_code(form, x[k], scale));
  }
  if (is_scaled(form)) put(out, scale_offset(x.size()), scale);
}

}  // namespace

void store_rows_reference(const StoreRows& a) {
  std::vector<float> row(a.form == RowForm::raw ? 0 : a.width);
  for (std::uint64_t i = 0; i < a.count && a.width > 0; ++i) {
    const std::byte* const from = a.rows + i * a.rows_stride;
    std::byte* const out = a.out + i * a.out_stride;
    if (a.form == RowForm::raw) {
      std::memcpy(out, from, a.width);
      continue;
    }
    std::memcpy(row.data(), from, a.width * sizeof(float));
    store_row(row, a.form, out);
  }
}

}  // namespace plait
