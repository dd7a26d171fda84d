// Random walks on ranks, and their verifier.
#include "plait/apps/spread_walks.h"

#include <gtest/gtest.h>

#include "tests/apps/walk_case.h"
#include "tests/support/error_of.h"

namespace plait::test {
namespace {

const RankProgram walks_on_graphs("walks on graphs", [](World& world) {
  unsigned seed = 0;
  for (const Drawing& drawing : all_odd_drawings()) check_walks_of(world, drawing, ++seed, {});
  for (; seed < 120; ++seed) check_walks_of(world, random_drawing(seed, 90), seed, {});
});

class SpreadWalksOnRanks : public testing::TestWithParam<int> {};

TEST_P(SpreadWalksOnRanks, AreThoseOfOneProcess) {
  const Outcome outcome =
      run_job({.program = "walks on graphs", .ranks = GetParam(), .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

INSTANTIATE_TEST_SUITE_P(Ranks, SpreadWalksOnRanks, testing::Values(1, 2, 3, 4));

TEST(SpreadWalks, RefuseWhatCannotBe) {
  const auto world = World::alone();
  const Dataset dataset = Drawing{.name = "path", .vertices = 4, .edges = path_edges(4)}.dataset();
  const SpreadWalks walks(*world, dataset, false, {});
  WalkQuestion question{.vertices = 4};
  question.settings.q = 0;
  EXPECT_EQ(error_of([&] { walks.check(question); }), "q is 0, outside 1e-09..1000000000");
  question = {.starts = std::vector<std::uint64_t>{1, 4}, .vertices = 4};
  EXPECT_EQ(error_of([&] { walks.check(question); }), "start 1 is 4, outside 0..3");
  question = {.vertices = 4, .walks = 1000};
  question.settings.length = WalkSettings::kMostSteps;
  question.block_bytes = std::uint64_t{1} << 60;
  EXPECT_THROW(walks.check(question), DoesNotFitError);
}

// What is thrown while walks are taken ends the run.
TEST(SpreadWalks, PassOnAnErrorOfTheirTaker) {
  const auto world = World::alone();
  const Dataset dataset = Drawing{.name = "path", .vertices = 4, .edges = path_edges(4)}.dataset();
  SpreadWalks walks(*world, dataset, false, {});
  EXPECT_THROW(walks.run({.vertices = 4}, [](auto) { throw MismatchError("wrong"); }), Error);
}

// The numbers of torch.manual_seed(SEED); torch.randint(2**63 - 1, ()).
TEST(WalkKey, IsThatOfTorch) {
  EXPECT_EQ(walk_key(0), 900450186894289456u);
  EXPECT_EQ(walk_key(1), 7692698082559361259u);
  EXPECT_EQ(walk_key(0xffffffff), 1800993050274709794u);
}

// A verifier sees every single vertex that no edge, stay or restart explains.
TEST(WalkVerifiers, SeeWrongSteps) {
  // 0 -> 1 -> 2 (weight 0), 1 -> 3, and 3 leads nowhere.
  const Drawing drawing{.name = "drawing",
                        .vertices = 5,
                        .edges = {{0, 1, 1}, {1, 2, 0}, {1, 3, 2}, {2, 0, 1}},
                        .weighted = true,
                        .order = 3};
  const Dataset dataset = drawing.dataset();
  const auto is_right = [&](bool weighted, double restart, std::vector<std::int64_t> walk) {
    WalkQuestion question{.starts = std::vector<std::uint64_t>{0}, .vertices = 5};
    question.settings.length = walk.size() - 1;
    question.settings.restart = restart;
    WalkVerifier verifier(dataset, weighted, question);
    try {
      verifier.check(walk);
      return true;
    } catch (const MismatchError&) {
      return false;
    }
  };
  EXPECT_TRUE(is_right(false, 0, {0, 1, 2, 0, 1, 3, 3}));
  EXPECT_TRUE(is_right(true, 0, {0, 1, 3, 3}));
  EXPECT_TRUE(is_right(true, 0.5, {0, 0, 1, 3, 0}));
  EXPECT_FALSE(is_right(true, 0, {0, 1, 2}));        // an edge of weight 0
  EXPECT_FALSE(is_right(false, 0, {1, 2, 0}));       // another start
  EXPECT_FALSE(is_right(false, 0, {0, 2}));          // against an edge
  EXPECT_FALSE(is_right(false, 0, {0, 1, 1}));       // an edge leads on
  EXPECT_FALSE(is_right(false, 0, {0, 1, 0}));       // no restarts
  EXPECT_FALSE(is_right(false, 0.5, {0, 1, 2, 1}));  // a restart leads elsewhere
  EXPECT_FALSE(is_right(false, 0.5, {0, 1, 3, 4}));  // nothing leads from 3
  EXPECT_FALSE(is_right(false, 0.5, {0, 1, 3, 5}));  // no vertex
  EXPECT_FALSE(is_right(false, 0.5, {0, 1, 3, -1}));
}

TEST(WalkVerifiers, SeeWrongSums) {
  const Dataset dataset = Drawing{.name = "path", .vertices = 3, .edges = path_edges(3)}.dataset();
  WalkQuestion question{.starts = std::vector<std::uint64_t>{0, 2}, .vertices = 3};
  question.settings.length = 3;
  WalkVerifier verifier(dataset, false, question);
  const std::vector<std::int64_t> walks{0, 1, 2, 2, 2, 2, 2, 2};
  verifier.check(std::span(walks).first(4));
  EXPECT_THROW(verifier.check(WalkTotals{2, 1}), MismatchError);  // a walk is missing
  verifier.check(std::span(walks).last(4));
  verifier.check(WalkTotals{2, 2});
  EXPECT_THROW(verifier.check(WalkTotals{3, 2}), MismatchError);
  EXPECT_THROW(verifier.check(WalkTotals{2, 1}), MismatchError);
}

}  // namespace
}  // namespace plait::test
