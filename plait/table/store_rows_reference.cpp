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

template <class Storage>
void store_row(const std::vector<float>& x, std::byte* out) {
  float scale = 1;
  if constexpr (kHasScale<Storage>) {
    std::uint32_t greatest = 0;
    for (const float value : x)
      greatest = std::max(greatest, __builtin_bit_cast(std::uint32_t, value) & ~kSignBit);
    scale = scale_of<Storage>(greatest);
    put(out, scale_offset(x.size()), scale);
  }
  for (std::uint64_t k = 0; k < x.size(); ++k)
    put(out, k * sizeof(typename Storage::Code), encoded<Storage>(x[k], scale));
}

}  // namespace

void store_rows_reference(const StoreRows& a) {
  std::vector<float> row(a.type == DType::raw ? 0 : a.width);
  for (std::uint64_t i = 0; i < a.count && a.width > 0; ++i) {
    const std::byte* const from = a.rows + i * a.rows_stride;
    std::byte* const out = a.out + i * a.out_stride;
    if (a.type == DType::raw) {
      std::memcpy(out, from, a.width);
      continue;
    }
    std::memcpy(row.data(), from, a.width * sizeof(float));
    with_storage(a.type, [&]<class S>(S) { store_row<S>(row, out); });
  }
}

}  // namespace plait
