// Facts that ranks must have alike: which differs, and on which ranks, in the same words on each.
#include "plait/world/difference.h"

#include <gtest/gtest.h>

#include "tests/world/ranks.h"

namespace plait::test {
namespace {

const RankProgram compares("compares", [](World& world) {
  const int rank = world.rank();
  const auto of = [&](const std::string& last) {
    return Facts{{"colour", "red"}, {"nothing", ""}, {"size", last}};
  };
  expect(first_difference(world, of("7")).empty(), "no difference");
  const auto found = first_difference(world, of(rank == 0 ? "7" : rank == 3 ? "9" : "8"));
  expect(found == "size is 7 on rank 0, but 8 on ranks 1-2, 4, 9 on rank 3", found);
  const auto missing = first_difference(world, rank == 2 ? Facts{} : of("7"));
  expect(missing == "colour is red on rank 0, but missing on rank 2", missing);
  const auto more = first_difference(world, rank == 1 ? Facts{{"shape", "round"}} : Facts{});
  expect(more == "shape is missing on rank 0, but round on rank 1", more);
  require_equal<UsageError>(world, "ranks have different things", of(rank == 4 ? "" : "7"));
});

TEST(Difference, IsToldInOneLine) {
  const auto outcome = run_job({"compares", 5});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(
      outcome.all_errors(),
      "plait: ranks have different things: size is 7 on rank 0, but nothing on rank 4; give every "
      "rank the same\n");
}

}  // namespace
}  // namespace plait::test
