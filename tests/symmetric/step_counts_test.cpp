#include "plait/symmetric/step_counts.h"

#include <gtest/gtest.h>

namespace plait::test {
namespace {

TEST(StepCounts, StepsAreUnderWayUntilTheyHaveEnded) {
  EXPECT_FALSE(StepCounts{}.under_way());
  EXPECT_TRUE((StepCounts{.direct_given = 1}.under_way()));
  EXPECT_FALSE((StepCounts{.direct_given = 1, .direct_done = 1}.under_way()));
  EXPECT_TRUE((StepCounts{.direct_given = 1, .direct_done = 0xffffffffu}.under_way()));
  EXPECT_TRUE((StepCounts{.replays_given = 3, .replays_done = 2}.under_way()));
}

TEST(StepCounts, UnannouncedReplaysHideNoOtherSteps) {
  EXPECT_FALSE((StepCounts{.replays_done = 5}.under_way()));
  EXPECT_TRUE((StepCounts{.direct_given = 1, .replays_done = 5}.under_way()));
  const std::uint32_t given = replays_after(0, 5, 2);
  EXPECT_TRUE((StepCounts{.replays_given = given, .replays_done = 6}.under_way()));
  EXPECT_FALSE((StepCounts{.replays_given = given, .replays_done = 7}.under_way()));
  EXPECT_EQ(replays_after(given, 6, 1), given + 1);
}

// Three replays that nobody announced are under way when one is announced.
TEST(StepCounts, AnAnnouncedReplayIsUnderWayBehindOthers) {
  StepCounts counts{.announcements_given = 1};
  for (; counts.replays_done < 3; ++counts.replays_done) EXPECT_TRUE(counts.under_way());
  counts.announcements_done = 1;  // the GPU comes to it
  counts.replays_given = replays_after(counts.replays_given, counts.replays_done, 1);
  EXPECT_TRUE(counts.under_way());
  counts.replays_done = 4;
  EXPECT_FALSE(counts.under_way());
}

TEST(StepCounts, ReplaysThatAreAnnouncedTogetherAddUp) {
  std::uint32_t given = 0xfffffffeu;
  given = replays_after(given, 0xfffffffeu, 1);
  given = replays_after(given, 0xfffffffeu, 2);
  EXPECT_EQ(given, 1u);
  EXPECT_TRUE((StepCounts{.replays_given = given, .replays_done = 0}.under_way()));
  EXPECT_FALSE((StepCounts{.replays_given = given, .replays_done = 1}.under_way()));
}

}  // namespace
}  // namespace plait::test
