// Facts that ranks must have alike: which differs, and on which ranks, in the same words on each.
#include "plait/world/difference.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
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

// One rank sums, the other gathers; both go on after the error.
const RankProgram agrees("agrees", [](World& world) {
  const auto rank = static_cast<std::uint64_t>(world.rank());
  const std::vector<Given> given = agree(world, "the same", {7 + rank, 0.5 * world.rank()});
  for (std::size_t r = 0; r < given.size(); ++r)
    expect(given[r].count == 7 + r && given[r].sum == 0.5 * static_cast<double>(r), "what it gave");
  const std::string differ =
      "ranks call different operations: rank 0 a sum of 3, but rank 1 a sum of 4; every rank must "
      "make the same calls in the same order";
  const auto told = error_of([&] {
    agree(world, rank == 1 ? "a sum of 4" : rank == 2 ? "a sum of 5" : "a sum of 3");
  });
  expect(told == differ, told);
  const std::byte byte{};
  const auto other = error_of([&] {
    if (rank == 0)
      agree(world, "a sum of 3");
    else
      world.all_gather({&byte, 1});
  });
  expect(other.find("rank 0 a sum of 3, but rank 1 an exchange of data;") != other.npos, other);
  agree(world, "the same");
});

TEST(Agreement, IsRefusedByAllRanksInOneLine) {
  const auto outcome = run_job({"agrees", 3, kPatient});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.all_errors(), "");
}

}  // namespace
}  // namespace plait::test
