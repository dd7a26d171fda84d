#include "plait/base/row_stride.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(RowStride, IsTheNextMultipleOf16BytesWhereRowsHaveMoreThan8) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    for (std::uint64_t width = 0; width <= 1000; ++width) {
      const std::uint64_t bytes = width * size_of(type), padded = row_bytes(width, type);
      EXPECT_EQ(row_stride(width, type) * size_of(type), padded);
      if (bytes <= 8) {
        EXPECT_EQ(padded, bytes) << width;
      } else {
        EXPECT_EQ(padded, (bytes + 15) / 16 * 16) << width;
      }
    }
}

// Because strides grow, room for a width is room for all below, and a row on the wire takes no more
// than in fp32.
TEST(RowStride, GrowsWithWidthAndType) {
  for (std::uint64_t width = 1; width <= 1000; ++width) {
    EXPECT_GE(row_stride(width), row_stride(width - 1));
    EXPECT_GE(row_bytes(width, DType::bf16), row_bytes(width - 1, DType::bf16));
    EXPECT_LE(row_bytes(width, DType::bf16), row_bytes(width));
  }
}

// The promise about widths rests on this: from 5 on, a row takes as much as the next multiple of
// four.
TEST(RowStride, IsThatOfTheNextMultipleOfFour) {
  for (const DType type : {DType::f32, DType::bf16})
    for (std::uint64_t width = 5; width <= 1000; ++width)
      EXPECT_EQ(row_stride(width, type), row_stride((width + 3) / 4 * 4, type)) << width;
}

}  // namespace
}  // namespace plait
