// Rows cut into groups: no edge is lost, no group is too large.
#include "plait/kernels/row_cut.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

TEST(RowCut, CoversTheRowInEvenSteps) {
  for (const std::uint32_t most : {32u, 64u, 100u, 2048u})
    for (EdgeOffset degree = 0; degree < 5000; ++degree) {
      const RowCut cut = cut_row(degree, most);
      ASSERT_GE(cut.groups, 1u);
      if (degree <= most) {
        ASSERT_EQ(cut.groups, 1u);
        continue;
      }
      ASSERT_EQ(cut.group_size % kGroupStep, 0u);
      ASSERT_LT(cut.group_size, most + kGroupStep);
      ASSERT_LT(EdgeOffset{cut.groups - 1} * cut.group_size, degree);
      ASSERT_GE(EdgeOffset{cut.groups} * cut.group_size, degree);
    }
}

TEST(RowCut, OfAHubBeyond32Bits) {
  const EdgeOffset degree = EdgeOffset{5} << 32;
  const RowCut cut = cut_row(degree, 2048);
  EXPECT_EQ(cut.groups, kMostGroups);
  EXPECT_EQ(EdgeOffset{cut.groups} * cut.group_size, degree);
}

TEST(ShortGroup, IsShorterInASmallGraph) {
  EXPECT_EQ(short_group(0), kShortInSmall);
  EXPECT_EQ(short_group(100'000'000), kShortInLarge);
}

TEST(GroupSize, FollowsTheMeanRow) {
  EXPECT_EQ(group_size(0, 0), 64u);
  EXPECT_EQ(group_size(1000, 1000), 64u);
  EXPECT_EQ(group_size(12'000, 1000), 64u);
  EXPECT_EQ(group_size(50'000'000, 1'000'000), 256u);
  EXPECT_EQ(group_size(490'000'000, 1'000'000), 2048u);
  EXPECT_EQ(group_size(20'000'000, 40'000), 512u);  // an eighth of a warp's 4,000
  EXPECT_EQ(group_size(490'000, 1000), 64u);
  EXPECT_EQ(group_size(1'000'000'000, 10), 2048u);
}

}  // namespace
}  // namespace plait
