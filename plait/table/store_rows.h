// Writes rows of single precision in the type in which they are stored (table/convert.h).
//
// A row of int8 has the scale max|x| / 127, a row of fp8 max|x| / 448, both in fp32. The CPU and
// the GPU write the same bits; bytes between rows are left as they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plait/table/stored_rows.h"

namespace plait {

// Arguments of store_rows(): out row i = row i of `rows`, which is of bytes if the type is raw.
struct StoreRows {
  const std::byte* rows = nullptr;
  std::uint64_t rows_stride = 0;  // bytes
  std::uint64_t count = 0;
  std::uint64_t width = 0;  // elements
  DType type = DType::raw;
  std::byte* out = nullptr;
  std::uint64_t out_stride = 0;  // bytes, at least stored_bytes(type, width)
};

// Writes the rows, by all threads. Floats and results may have any alignment.
void store_rows(const StoreRows& args);
// The same in plain loops and one thread: the oracle.
void store_rows_reference(const StoreRows& args);

}  // namespace plait
