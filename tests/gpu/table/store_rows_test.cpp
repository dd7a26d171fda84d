// Rows that the GPU stores have the bits of plain loops.
#include "plait/table/cuda/store_rows.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "plait/base/cuda/cuda.cuh"
#include "tests/support/stored_rows.h"

namespace plait {
namespace {

// Numbers of all sizes, and some that are not finite.
std::vector<float> odd_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    const auto bits = static_cast<std::uint32_t>(random());
    const float small = static_cast<float>(bits) / 4e9f - 0.5f;
    value = bits % 4 == 0 ? 0 : bits % 1000 == 1 ? __builtin_bit_cast(float, bits) : small;
  }
  return values;
}

void check(DType type, std::uint64_t width, std::uint64_t count) {
  SCOPED_TRACE(testing::Message() << "type " << static_cast<int>(type) << ", " << count
                                  << " rows of " << width);
  const std::uint64_t in = (width + 1) * sizeof(float), stride = stored_stride(type, width) + 16;
  const auto rows = odd_floats(count * (width + 1), static_cast<unsigned>(width));
  const DeviceArray<float> rows_there{std::span(rows)};
  std::vector<std::byte> out(count * stride, std::byte{0x5a});
  DeviceArray<std::byte> out_there{std::span<const std::byte>(out)};
  StoreRows args{.rows = reinterpret_cast<const std::byte*>(rows.data()),
                 .rows_stride = in,
                 .count = count,
                 .width = width,
                 .type = type,
                 .out = out.data(),
                 .out_stride = stride};
  store_rows_reference(args);
  args.rows = reinterpret_cast<const std::byte*>(rows_there.data()), args.out = out_there.data();
  gpu_store_rows(args, nullptr);
  ASSERT_EQ(out_there.to_host(), out);
}

TEST(StoreRowsCuda, EqualsTheReference) {
  for (const DType type : test::row_types())
    for (const std::uint64_t width : {0, 1, 2, 3, 5, 8, 16, 31, 33, 100, 128, 1000})
      for (const std::uint64_t count : {0, 1, 33, 2000}) check(type, width, count);
  check(DType::fp8, 3, 200000);
}

}  // namespace
}  // namespace plait
