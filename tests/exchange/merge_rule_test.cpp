// The rule of merges at numbers that are odd.
#include "plait/exchange/merge_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plait::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Merge, ANumberTakesThePlaceOfANanWhoeverHasIt) {
  EXPECT_EQ((merged<Merge::min>(kNan, 3.0f)), 3);
  EXPECT_EQ((merged<Merge::min>(3.0f, kNan)), 3);
  EXPECT_EQ((merged<Merge::max>(kNan, 3.0f)), 3);
  EXPECT_EQ((merged<Merge::max>(3.0f, kNan)), 3);
  EXPECT_TRUE(std::isnan(merged<Merge::min>(kNan, kNan)));
}

TEST(Merge, ASumWithZeroChangesNothing) {
  for (const float mine : {-0.0f, 0.0f, 2.5f, kNan, std::numeric_limits<float>::signaling_NaN(),
                           -std::numeric_limits<float>::infinity()})
    EXPECT_FALSE((changes<Merge::add>(mine, merged<Merge::add>(mine, 0.0f)))) << mine;
  EXPECT_TRUE((changes<Merge::add>(2.5f, merged<Merge::add>(2.5f, kNan))));
  EXPECT_TRUE((changes<Merge::add>(2.5f, merged<Merge::add>(2.5f, 1.0f))));
}

TEST(Merge, WholeNumbersWrapAndKeepTheirBits) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ((merged<Merge::add>(kMost, 1)), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ((merged<Merge::bit_or>(std::int64_t{-8}, std::int64_t{5})), -3);
  EXPECT_EQ((merged<Merge::first>(~std::uint64_t{0}, std::uint64_t{9})), 9u);
  EXPECT_EQ((merged<Merge::first>(std::uint64_t{0}, std::uint64_t{9})), 0u);
  EXPECT_EQ((merged<Merge::first>(-1, 4)), 4);
}

}  // namespace
}  // namespace plait::test
