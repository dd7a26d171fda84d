#include "plait/base/raw_vector.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace plait {
namespace {

TEST(RawVector, GrowsAndKeepsItsValues) {
  RawVector<std::uint32_t> values{1, 2, 3};
  values.resize(5, 7);
  EXPECT_EQ(values, (RawVector<std::uint32_t>{1, 2, 3, 7, 7}));
  values.resize(std::size_t{3} << 20);  // past the bound from which memory is on huge pages
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(values.data()) % kHugePage, 0u);
  EXPECT_EQ(values[4], 7u);
  values.resize(2);
  EXPECT_EQ(values, (RawVector<std::uint32_t>{1, 2}));
  EXPECT_EQ(RawVector<std::uint32_t>(4, 9), (RawVector<std::uint32_t>{9, 9, 9, 9}));
}

}  // namespace
}  // namespace plait
