// Numbers become the nearest that a type has, found by search, and rows have the bits of plain
// loops.
#include "plait/table/store_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "plait/base/bf16.h"
#include "plait/table/convert.h"
#include "plait/table/gather_rows.h"
#include "tests/support/stored_rows.h"

namespace plait {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The value of an e4m3 code by its definition: the bias is 7, and only all ones are no number.
float e4m3_value(unsigned code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  if ((code & 127) == 127) return std::numeric_limits<float>::quiet_NaN();
  const double size =
      exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return static_cast<float>(code >> 7 != 0 ? -size : size);
}

TEST(Convert, Fp8CodesAreExact) {
  for (unsigned code = 0; code < 256; ++code) {
    const float found = fp8_to_float(static_cast<std::uint8_t>(code));
    if (std::isnan(e4m3_value(code)))
      EXPECT_TRUE(std::isnan(found)) << code;
    else
      EXPECT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(e4m3_value(code)))
          << code;
  }
}

// Returns the positive code below `codes` whose value is nearest, the even one of two.
template <class Value>
unsigned nearest(double x, unsigned codes, Value value) {
  unsigned best = 0;
  for (unsigned code = 1; code < codes; ++code) {
    const double d = std::abs(value(code) - x), least = std::abs(value(best) - x);
    if (d < least || (d == least && code % 2 == 0)) best = code;
  }
  return best;
}

TEST(Convert, Fp8IsTheNearest) {
  std::vector<float> values{0, 1e-30f, 1e30f, kInf, 447.9f, 464, 463.9f, 0x1p-10f, 0x1.8p-9f};
  for (unsigned code = 0; code < 126; ++code) {  // numbers, those halfway, and their neighbours
    const float middle = (e4m3_value(code) + e4m3_value(code + 1)) / 2;
    for (const float x :
         {e4m3_value(code), middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kInf)})
      values.push_back(x);
  }
  for (const float x : values) {
    const unsigned code = x > 448 ? 126 : nearest(x, 127, e4m3_value);
    EXPECT_EQ(float_to_fp8(x), code) << x;
    EXPECT_EQ(float_to_fp8(-x), code | 128) << -x;
  }
  EXPECT_TRUE(std::isnan(fp8_to_float(float_to_fp8(std::nanf("")))));
}

TEST(Convert, HalfIsTheNearest) {
  for (unsigned code = 0; code < 0x7c00; ++code) {
    const float here = half_to_float(static_cast<std::uint16_t>(code));
    // The number that would follow the greatest is where infinity begins.
    const float next =
        code == 0x7bff ? 65536.0f : half_to_float(static_cast<std::uint16_t>(code + 1));
    const float middle = (here + next) / 2;
    ASSERT_EQ(float_to_half(here), code);
    ASSERT_EQ(float_to_half(-here), code | 0x8000);
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0f)), code);
    ASSERT_EQ(float_to_half(std::nextafter(middle, kInf)), code + 1);
    ASSERT_EQ(float_to_half(middle), code % 2 == 0 ? code : code + 1);
  }
  EXPECT_EQ(float_to_half(kInf), 0x7c00);
  EXPECT_EQ(float_to_half(1e30f), 0x7c00);
  EXPECT_EQ(float_to_half(1e-30f), 0);
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(std::nanf("")))));
}

TEST(Convert, Bf16IsThatOfDatasets) {
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    ASSERT_EQ(float_to_bf16_bits(x), to_bf16(x).bits) << x;
  }
}

TEST(Convert, Int8IsTheNearest) {
  for (float x = -130; x <= 130; x += 0.125f) {
    const double clamped = std::min(127.0, std::max(-127.0, static_cast<double>(x)));
    EXPECT_EQ(float_to_int8(x), static_cast<int>(std::nearbyint(clamped))) << x;
  }
}

TEST(Convert, CodesHaveTheirTypesTraits) {
  for (const DType type : test::number_types())
    with_storage(type, [&]<class S>(S) {
      EXPECT_EQ(sizeof(typename S::Code), size_of(type)) << to_string(type);
      EXPECT_EQ(kHasScale<S>, is_scaled(type)) << to_string(type);
    });
}

std::vector<std::byte> stored(void (*store)(const StoreRows&), const std::vector<std::byte>& rows,
                              std::uint64_t count, std::uint64_t width, DType type) {
  const std::uint64_t in = width * (type == DType::raw ? 1 : 4) + 2;
  const std::uint64_t stride = stored_stride(type, width) + 1;
  std::vector<std::byte> out(count * stride, std::byte{0x5a});
  store({.rows = rows.data() + 1,
         .rows_stride = in,
         .count = count,
         .width = width,
         .type = type,
         .out = out.data(),
         .out_stride = stride});
  return out;
}

TEST(StoreRows, EqualsTheReference) {
  std::mt19937 random(3);
  for (const DType type : test::row_types())
    for (const std::uint64_t width : {0, 1, 2, 3, 5, 8, 16, 33, 100, 128})
      for (const std::uint64_t count : {0, 1, 700}) {
        std::vector<std::byte> rows(count * (width * 4 + 2) + 1);
        for (std::byte& byte : rows) byte = static_cast<std::byte>(random());
        EXPECT_EQ(stored(store_rows, rows, count, width, type),
                  stored(store_rows_reference, rows, count, width, type))
            << static_cast<int>(type) << ' ' << width << ' ' << count;
      }
}

// Returns a row as it is after it was stored and gathered.
std::vector<float> kept(const std::vector<float>& row, DType type) {
  std::vector<std::byte> memory(stored_stride(type, row.size()));
  store_rows({.rows = reinterpret_cast<const std::byte*>(row.data()),
              .rows_stride = row.size() * 4,
              .count = 1,
              .width = row.size(),
              .type = type,
              .out = memory.data(),
              .out_stride = memory.size()});
  StoredRows view;
  view.base[0] = memory.data(), view.stride = memory.size(), view.rows = view.ranks = 1;
  view.starts[1] = 1;
  std::vector<float> out(row.size());
  const std::uint64_t id = 0;
  gather_rows({.from = view,
               .ids = &id,
               .count = 1,
               .width = row.size(),
               .type = type,
               .out = reinterpret_cast<std::byte*>(out.data()),
               .out_stride = row.size() * 4});
  return out;
}

TEST(StoreRows, KeepsNumbersAsNearAsItsForm) {
  std::mt19937 random(5);
  for (const float size : {1e-38f, 1e-3f, 1.0f, 1e30f})
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<float> row(37);
      float greatest = 0;
      for (float& x : row) {
        x = (static_cast<float>(random() % 20001) / 10000 - 1) * size;
        greatest = std::max(greatest, std::abs(x));
      }
      const auto int8 = kept(row, DType::int8), fp8 = kept(row, DType::fp8);
      for (std::size_t k = 0; k < row.size(); ++k) {
        EXPECT_LE(std::abs(int8[k] - row[k]), greatest / 127 * 0.5002) << row[k];
        // Half a step of 3 bits, or of the least number.
        EXPECT_LE(std::abs(fp8[k] - row[k]),
                  std::max(std::abs(row[k]) / 16, greatest / 448 * 0x1p-10f) * 1.0001f)
            << row[k];
      }
    }
}

TEST(StoreRows, OfOddRows) {
  for (const DType type : {DType::int8, DType::fp8}) {
    EXPECT_EQ(kept({0, -0.0f, 0}, type), (std::vector<float>{0, 0, 0}));
    EXPECT_EQ(kept({1e-45f, 0}, type), (std::vector<float>{0, 0}));  // no scale is so small
    for (const float odd : {kInf, -kInf, std::nanf("")})
      for (const float x : kept({1, odd, 0}, type)) EXPECT_TRUE(std::isnan(x)) << odd;
    // The greatest numbers come back but for the rounding of one division and one product.
    const auto ends = kept({-3.4e38f, 3.4e38f, 1}, type);
    EXPECT_FLOAT_EQ(ends[0], -3.4e38f);
    EXPECT_FLOAT_EQ(ends[1], 3.4e38f);
  }
}

TEST(StoredRows, GapsAreSmall) {
  for (const DType type : test::row_types())
    for (std::uint64_t width = 1; width < 300; ++width) {
      const std::uint64_t bytes = stored_bytes(type, width), stride = stored_stride(type, width);
      EXPECT_GE(stride, bytes);
      EXPECT_LT(static_cast<double>(stride - bytes), 0.2 * static_cast<double>(stride)) << width;
      EXPECT_EQ(stride % (bytes >= 64 ? 16 : size_of(type)), 0u) << width;
    }
}

}  // namespace
}  // namespace plait
