#include "plait/aggregate/sample_counts.h"

#include <gtest/gtest.h>

#include <array>

namespace plait {
namespace {

// A sample whose rows have a group each, besides those of `cut` rows that are cut into three.
SampleCounts sample(std::uint64_t own, std::uint64_t inputs, std::uint64_t edges,
                    std::uint32_t cut = 0) {
  const auto groups = [&](std::uint64_t rows) {
    return GroupCounts{.groups = static_cast<std::uint32_t>(rows) + 2 * cut,
                       .long_groups = 10 + 3 * cut,
                       .few = cut,
                       .hubs = 0,
                       .partial_sums = 3 * cut,
                       .edges = edges};
  };
  return {.own = own,
          .inputs = inputs,
          .edges = edges,
          .along = groups(own),
          .against = groups(inputs)};
}

TEST(SampleCounts, ARoomHoldsWhatWasSeenAndAFewPercentMore) {
  const std::array seen{sample(1000, 9000, 30000), sample(1100, 8000, 31000, 5)};
  const SampleCounts room = room_for(seen);
  for (const SampleCounts& one : seen) EXPECT_TRUE(fits(one, room));
  EXPECT_TRUE(fits(sample(1110, 9100, 32000, 5), room));
  EXPECT_TRUE(fits(sample(1, 1, 0), room));
  EXPECT_LT(room.own, 1100 * 1.09);
  EXPECT_LT(room.inputs, 9000 * 1.03);
  EXPECT_LT(room.edges, 31000 * 1.06);
  // Each row of the room has a group, whatever the sample's rows are.
  EXPECT_GE(room.along.groups, room.own + 10);
  EXPECT_GE(room.against->groups, room.inputs + 10);
}

TEST(SampleCounts, WhatIsLargerInAnyCountDoesNotFit) {
  const std::array seen{sample(1000, 9000, 30000, 4)};
  const SampleCounts room = room_for(seen);
  EXPECT_FALSE(fits(sample(room.own + 1, 9000, 30000), room));
  EXPECT_FALSE(fits(sample(1000, room.inputs + 1, 30000), room));
  EXPECT_FALSE(fits(sample(1000, 9000, room.edges + 1), room));
  EXPECT_FALSE(fits(sample(1000, 9000, 30000, room.along.few + 1), room));
  SampleCounts other = seen[0];
  other.along.long_groups = room.along.long_groups + 1;
  EXPECT_FALSE(fits(other, room));
  other = seen[0];
  other.against->hubs = room.against->hubs + 1;
  EXPECT_FALSE(fits(other, room));
  other = seen[0];
  other.against->partial_sums = room.against->partial_sums + 1;
  EXPECT_FALSE(fits(other, room));
  other = seen[0];
  other.weighted = true;
  EXPECT_FALSE(fits(other, room));
  other = seen[0];
  other.against.reset();
  EXPECT_FALSE(fits(other, room));
}

// A layer's own rows are the inputs of the next one.
TEST(SampleCounts, RoomsOfLayersFitTogether) {
  for (std::uint64_t rows = 0; rows < 5000; rows += 37) {
    const std::array first{sample(rows, 9000, 100)}, second{sample(10, rows, 100)};
    EXPECT_EQ(room_for(first).own, room_for(second).inputs);
    EXPECT_GT(room_for(first).own, 0u);
  }
}

TEST(SampleCounts, WithoutCutRowsThereIsNoRoomForThem) {
  const std::array seen{sample(1000, 9000, 30000)};
  const SampleCounts room = room_for(seen);
  EXPECT_EQ(room.along.groups, room.own);
  EXPECT_EQ(room.along.few + room.along.hubs + room.along.partial_sums, 0u);
}

TEST(SampleCounts, WithoutShortGroupsTheRoomHasNone) {
  std::array seen{sample(1000, 9000, 30000, 4), sample(900, 8000, 20000)};
  EXPECT_LT(room_for(seen).along.long_groups, room_for(seen).along.groups);
  for (SampleCounts& one : seen) one.along.long_groups = one.along.groups;
  EXPECT_EQ(room_for(seen).along.long_groups, room_for(seen).along.groups);
}

}  // namespace
}  // namespace plait
