// Two ranks whose GPUs cannot reach each other are named, in the same words on all ranks.
#include "plait/symmetric/peer_access.h"

#include <gtest/gtest.h>

#include "tests/world/ranks.h"

namespace plait::test {
namespace {

const RankProgram kReach("peer access", [](World& world) {
  const std::string none = unreached_peer(world, [](int) { return true; });
  expect(none.empty(), none);
  // 0 and 1 reach each other, and so do the others.
  const std::string two =
      unreached_peer(world, [&](int peer) { return (peer < 2) == (world.rank() < 2); });
  expect(two == "the GPU of rank 0 cannot reach the memory of rank 2's", two);
  const std::string last =
      unreached_peer(world, [&](int peer) { return peer + world.rank() != 5; });
  expect(last == "the GPU of rank 2 cannot reach the memory of rank 3's", last);
});

TEST(PeerAccess, TwoRanksAreNamedOnAll) {
  const Outcome outcome = run_job({.program = "peer access", .ranks = 4});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

}  // namespace
}  // namespace plait::test
