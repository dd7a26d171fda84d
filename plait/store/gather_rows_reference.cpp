#include <cstring>

#include "plait/store/convert.h"
#include "plait/store/gather_rows.h"

namespace plait {
namespace {

const std::byte* row_at(const StoredRows& rows, std::uint64_t id) {
  if (rows.owner != nullptr) return rows.base[rows.owner[id]] + rows.row[id] * rows.stride;
  int rank = 0;
  while (id >= rows.starts[static_cast<std::size_t>(rank) + 1]) ++rank;
  const auto r = static_cast<std::size_t>(rank);
  return rows.base[r] + (id - rows.starts[r]) * rows.stride;
}

}  // namespace

void gather_rows_reference(const GatherRows& a) {
  for (std::uint64_t i = 0; i < a.count; ++i) {
    const std::byte* const row = row_at(a.from, a.ids[i]);
    std::byte* const out = a.out + i * a.out_stride;
    if (a.form == RowForm::raw) {
      for (std::uint64_t k = 0; k < a.width; ++k) out[k] = row[k];
      continue;
    }
    for (std::uint64_t k = 0; k < a.width; ++k) {
      const float value = stored_float(row + k * element_bytes(a.form), a.form);
      std::memcpy(out + k * sizeof(float), &value, sizeof(float));
    }
  }
}

void add_rows_reference(const AddRows& a) {
  for (std::uint64_t i = 0; i < a.count; ++i) {
    auto* const row = reinterpret_cast<float*>(const_cast<std::byte*>(row_at(a.to, a.ids[i])));
    for (std::uint64_t k = 0; k < a.width; ++k) row[k] += a.rows[i * a.rows_stride + k];
  }
}

}  // namespace plait
