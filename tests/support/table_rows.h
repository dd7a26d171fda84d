// Rows of a table by a formula, and what a gather of them yields, for tests.
#pragma once

#include <atomic>
#include <cstring>
#include <vector>

#include "plait/table/convert.h"
#include "plait/table/store_rows.h"
#include "plait/table/table_layout.h"

namespace plait::test {

// Returns element k of row `id`: no two rows are alike, and magnitudes differ from row to row.
inline float table_value(std::uint64_t id, std::uint64_t k) {
  const auto mixed = static_cast<std::uint32_t>((id * 31 + k + 1) * 0x9E3779B97F4A7C15u >> 40);
  return (static_cast<float>(mixed) / 8388608.0f - 1.0f) * static_cast<float>(1 + id % 7);
}
inline std::byte table_byte(std::uint64_t id, std::uint64_t k) {
  return static_cast<std::byte>((id * 131 + k * 7) >> 3);
}

// A source of such rows, which counts the rows that it gave to `given`.
inline TableSource table_source(const TableSettings& s, std::atomic<std::uint64_t>& given) {
  return [&given, s](std::span<const std::uint64_t> ids, std::byte* rows) {
    given += ids.size();
    for (const std::uint64_t id : ids)
      for (std::uint64_t k = 0; k < s.width; ++k) {
        if (s.type == DType::raw) {
          *rows++ = table_byte(id, k);
          continue;
        }
        const float value = table_value(id, k);
        std::memcpy(rows, &value, sizeof(value));
        rows += sizeof(value);
      }
  };
}

// Returns what a gather of a row yields: its bytes, or its elements after they were stored.
inline std::vector<std::byte> table_row(const TableSettings& s, std::uint64_t id) {
  std::vector<float> values(s.width);
  std::vector<std::byte> raw(s.width), stored(stored_bytes(s.type, s.width));
  for (std::uint64_t k = 0; k < s.width; ++k)
    values[k] = table_value(id, k), raw[k] = table_byte(id, k);
  if (s.type == DType::raw) return raw;
  store_rows_reference({.rows = reinterpret_cast<const std::byte*>(values.data()),
                        .rows_stride = 0,
                        .count = 1,
                        .width = s.width,
                        .type = s.type,
                        .out = stored.data(),
                        .out_stride = 0});
  for (std::uint64_t k = 0; k < s.width; ++k)
    values[k] = stored_float(stored.data(), s.type, k, scale_at(stored.data(), s.type, s.width));
  std::vector<std::byte> bytes(s.width * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Returns the rows of all ids, one after the other.
inline std::vector<std::byte> table_rows(const TableSettings& s,
                                         std::span<const std::uint64_t> ids) {
  std::vector<std::byte> rows;
  for (const std::uint64_t id : ids) {
    const auto row = table_row(s, id);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

}  // namespace plait::test
