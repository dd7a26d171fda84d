#include "plait/exchange/shared_machine.h"

#include <gtest/gtest.h>

#include "tests/world/ranks.h"

namespace plait::test {
namespace {

// Rank 0 has a profile, which the others get bit by bit; then none, which changes nothing.
const RankProgram kShare("share-machine", [](World& world) {
  MachineProfile profile;
  profile.name = "a \"machine\"";
  profile.passes.link = 1e11 / 3;
  profile.push_by_kernel = 12345;
  std::optional<MachineProfile> mine;
  if (world.rank() == 0) mine = profile;
  share_machine(world, mine);
  expect(to_json(machine()) == to_json(profile), to_json(machine()));
  share_machine(world, std::nullopt);
  expect(to_json(machine()) == to_json(profile), to_json(machine()));
});

// Every rank keeps the profile that PLAIT_MACHINE names.
const RankProgram kKeep("keep-machine", [](World& world) {
  share_machine(world, MachineProfile());
  expect(machine().name == "links of 25 GB/s", machine().name);
});

TEST(ShareMachine, AllRanksTakeThatOfRankZero) {
  const Outcome outcome = run_job({.program = "share-machine", .ranks = 3, .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

TEST(ShareMachine, TheEnvironmentCountsMore) {
  const Outcome outcome =
      run_job({.program = "keep-machine",
               .ranks = 2,
               .timeout_ms = kPatient,
               .environment = {{"PLAIT_MACHINE", PLAIT_SOURCE_DIR "/tests/gpu/slow_links.json"}}});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

}  // namespace
}  // namespace plait::test
