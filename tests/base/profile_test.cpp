#include "plait/base/profile.h"

#include <gmock/gmock.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "plait/base/error.h"
#include "plait/base/profile_table.h"

namespace plait {
namespace {

using testing::ElementsAre;

std::vector<std::string> names_of(const Profile& profile) {
  std::vector<std::string> names;
  for (const PhaseTotal& phase : profile.phases) names.push_back(phase.name);
  return names;
}

void pass_time() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

TEST(Profile, NotesNothingUnlessStarted) {
  {
    const Timed timed("before");
    count_moved(5);
  }
  EXPECT_FALSE(profiling());
  EXPECT_THROW(end_profile(), UsageError);
  start_profile({});
  EXPECT_TRUE(profiling());
  const Profile profile = end_profile();
  EXPECT_FALSE(profiling());
  EXPECT_TRUE(profile.phases.empty());
}

TEST(Profile, PhasesNestAndAddUp) {
  start_profile({});
  for (int i = 0; i < 3; ++i) {
    const Timed outer("outer");
    for (int k = 0; k < 2; ++k) {
      const Timed inner("inner");
      pass_time();
      count_moved(10);
    }
    count_moved(1);
  }
  EXPECT_EQ(timed("inner", [] { return 7; }), 7);  // another phase than the one inside of "outer"
  const Profile profile = end_profile();
  ASSERT_THAT(names_of(profile), ElementsAre("outer", "inner", "inner"));
  const PhaseTotal &outer = profile.phases[0], &inner = profile.phases[1];
  EXPECT_EQ(outer.outer, -1);
  EXPECT_EQ(inner.outer, 0);
  EXPECT_EQ(profile.phases[2].outer, -1);
  EXPECT_EQ(outer.calls, 3u);
  EXPECT_EQ(inner.calls, 6u);
  EXPECT_EQ(outer.bytes, 3u);
  EXPECT_EQ(inner.bytes, 60u);
  EXPECT_GE(inner.ns, 6u * 200'000);
  EXPECT_GE(outer.ns, inner.ns);
  EXPECT_GE(profile.ns, outer.ns);
  EXPECT_TRUE(profile.spans.empty());
}

TEST(Profile, AnExceptionEndsItsPhases) {
  start_profile({});
  try {
    const Timed outer("outer");
    const Timed inner("inner");
    throw std::runtime_error("lost");
  } catch (const std::runtime_error&) {
  }
  { const Timed after("after"); }
  const Profile profile = end_profile();
  ASSERT_THAT(names_of(profile), ElementsAre("outer", "inner", "after"));
  EXPECT_EQ(profile.phases[2].outer, -1);
}

TEST(Profile, OtherThreadsAndPausesAreNotNoted) {
  start_profile({});
  {
    const Timed timed("here");
    std::thread([] {
      EXPECT_FALSE(profiling());
      const Timed elsewhere("elsewhere");
      count_moved(100);
    }).join();
    const ProfilePause pause;
    const Timed hidden("hidden");
    count_moved(100);
  }
  { const Timed after("after"); }
  const Profile profile = end_profile();
  EXPECT_THAT(names_of(profile), ElementsAre("here", "after"));
  EXPECT_EQ(profile.phases[0].bytes, 0u);
}

TEST(Profile, SpansAreBounded) {
  start_profile({.spans = true, .most_spans = 6});
  for (int i = 0; i < 10; ++i) {
    const Timed outer("outer");
    const Timed inner("inner");
  }
  const Profile profile = end_profile();
  // Six spans of both kinds, then outermost ones up to twelve.
  EXPECT_EQ(profile.spans.size(), 6u + 6u);
  EXPECT_EQ(profile.left_out, 20u - 12u);
  EXPECT_EQ(profile.phases[0].calls, 10u);
  EXPECT_EQ(profile.phases[1].calls, 10u);
  for (std::size_t i = 0; i < 6; i += 2) {
    const TraceSpan &outer = profile.spans[i], &inner = profile.spans[i + 1];
    EXPECT_EQ(outer.name, "outer");
    EXPECT_EQ(inner.name, "inner");
    EXPECT_LE(outer.begin, inner.begin);
    EXPECT_LE(inner.begin, inner.end);
    EXPECT_LE(inner.end, outer.end);
  }
  EXPECT_EQ(profile.spans.back().name, "outer");
}

int waits = 0;

TEST(Profile, WaitsForWorkOfPhases) {
  start_profile({});
  waits = 0;
  settle_phases_by([] { ++waits; });
  {
    const Timed timed("work");
    EXPECT_EQ(waits, 1);
  }
  EXPECT_EQ(waits, 2);
  settle_phases_by([] { throw std::runtime_error("the device failed"); });
  EXPECT_THROW(Timed("more"), std::runtime_error);
  EXPECT_THAT(names_of(end_profile()), ElementsAre("work"));
}

// A wait that nothing would call is refused, and none outlives its profile.
TEST(Profile, OnlyAProfileWaits) {
  EXPECT_THROW(settle_phases_by([] { ++waits; }), UsageError);
  waits = 0;
  start_profile({});
  settle_phases_by([] { ++waits; });
  end_profile();
  start_profile({});
  { const Timed timed("work"); }
  end_profile();
  EXPECT_EQ(waits, 0);
  EXPECT_THROW(settle_phases_by([] { ++waits; }), UsageError);
}

TEST(Profile, TextComesBack) {
  Profile profile{.ns = 100};
  profile.phases = {{"a \"phase\"", -1, 2, 90, 4}, {"b", 0, 3, 20, 1u << 31}};
  profile.left_out = 5;
  const Profile back = profile_of_text(to_text(profile));
  EXPECT_EQ(back.ns, 100u);
  EXPECT_EQ(back.left_out, 5u);
  ASSERT_EQ(back.phases.size(), 2u);
  EXPECT_EQ(back.phases[0].name, "a \"phase\"");
  EXPECT_EQ(back.phases[1].outer, 0);
  EXPECT_EQ(back.phases[1].bytes, 1u << 31);
  EXPECT_THROW(profile_of_text("{"), Error);
  EXPECT_THROW(profile_of_text("[1,[[\"a\",0,1,1,1]],0]"), Error);  // inside of itself
  EXPECT_THROW(profile_of_text("[1]"), Error);
}

// Rank 1 enters a phase that rank 0 does not, and one of them in another order.
TEST(ProfileTable, RowsOfAllRanksAddUp) {
  Profile first{.ns = 100}, second{.ns = 200};
  first.phases = {{"read", -1, 1, 30, 0}, {"epoch", -1, 2, 60, 3}, {"move", 1, 4, 20, 50}};
  second.phases = {{"epoch", -1, 2, 150, 3},
                   {"write", 0, 1, 40, 0},
                   {"move", 0, 4, 100, 70},
                   {"read", -1, 1, 10, 0}};
  const std::vector<ProfileRow> rows = profile_table({first, second});
  std::vector<std::string> paths;
  for (const ProfileRow& row : rows) paths.push_back(row.path);
  ASSERT_THAT(paths,
              ElementsAre("read", "epoch", "epoch/move", "epoch/write", "epoch/other", "other"));
  EXPECT_THAT(rows[1].ns, ElementsAre(60, 150));
  EXPECT_THAT(rows[1].bytes, ElementsAre(53, 73));  // with inner phases
  EXPECT_FALSE(rows[1].moves);
  EXPECT_THAT(rows[2].bytes, ElementsAre(50, 70));
  EXPECT_TRUE(rows[2].moves);
  EXPECT_THAT(rows[3].calls, ElementsAre(0, 1));
  EXPECT_THAT(rows[4].ns, ElementsAre(40, 10));
  EXPECT_THAT(rows[5].ns, ElementsAre(10, 40));
  EXPECT_EQ(rows[2].depth, 1u);
  EXPECT_EQ(rows[5].depth, 0u);
}

TEST(ProfileTable, ARunWithoutPhasesIsOther) {
  const std::vector<ProfileRow> rows = profile_table({Profile{.ns = 7}});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].path, "other");
  EXPECT_THAT(rows[0].ns, ElementsAre(7));
}

}  // namespace
}  // namespace plait
