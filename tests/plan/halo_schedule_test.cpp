#include "plait/plan/halo_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plait {
namespace {

constexpr PassWidths kWidth64{256, 256};
// The loads are a quarter of a graph of 2.4 M vertices and 124 M edges, and of one of 0.23 M and
// 115 M.
constexpr RankLoad kProducts{612258, 1836506, 8'000'000, 23'000'000};
constexpr RankLoad kReddit{58242, 174723, 7'200'000, 21'500'000};

TEST(HaloSchedule, CutsAscendToTheEnd) {
  for (const RankLoad& load :
       {kProducts, kReddit, RankLoad{0, 1, 0, 1}, RankLoad{10, 3, 0, 3}, RankLoad{1, 1, 0, 0}})
    for (const std::uint64_t bytes : {4, 64, 256, 4096}) {
      const auto cuts = halo_cuts(load, {bytes, bytes});
      if (cuts.empty()) continue;
      EXPECT_TRUE(std::ranges::is_sorted(cuts));
      EXPECT_EQ(std::ranges::adjacent_find(cuts), cuts.end());
      EXPECT_GT(cuts.front(), 0u);
      EXPECT_EQ(cuts.back(), load.halo);
      EXPECT_LE(cuts.size(), 40u);
    }
}

TEST(HaloSchedule, NothingArrivesNothingIsCut) {
  EXPECT_TRUE(halo_cuts({1000, 0, 5000, 0}, kWidth64).empty());
}

// With a slow link the sum hides behind it, with a fast one the link behind the sum. If they take
// about as long, the passes' own costs show.
TEST(HaloSchedule, HidesTheShorterOfLinkAndSum) {
  for (const RankLoad& load : {kProducts, kReddit})
    for (const double link : {40e9, 375e9, 4e12}) {
      const PassCosts costs{.link = link};
      const auto cuts = halo_cuts(load, kWidth64, {}, costs);
      const double in_turn = predict_passes(load, kWidth64, {}, costs);
      const double link_time = static_cast<double>(load.halo * kWidth64.wire_bytes) / link;
      const double limit = std::max(link_time, in_turn - link_time);
      const double found = predict_passes(load, kWidth64, cuts, costs);
      EXPECT_LE(found, in_turn);
      EXPECT_LT(found, 1.35 * limit) << link;
    }
}

// Attention takes longer than an extremum, and both than a sum; with more work, fewer passes hide
// the link.
TEST(HaloSchedule, OperationsOverEdgesHaveTheirOwnCosts) {
  const auto widths = [](EdgeWork work) { return PassWidths{520, 288, work}; };
  for (const RankLoad& load : {kProducts, kReddit}) {
    const double sum = predict_passes(load, {288, 288}, {});
    EXPECT_GT(predict_passes(load, widths(EdgeWork::extremum), {}), sum);
    EXPECT_GT(predict_passes(load, widths(EdgeWork::attention), {}),
              predict_passes(load, widths(EdgeWork::extremum), {}));
    const auto cuts = halo_cuts(load, widths(EdgeWork::extremum));
    ASSERT_FALSE(cuts.empty());
    EXPECT_LE(cuts.size(), halo_cuts(load, {288, 288}).size());
    EXPECT_LT(predict_passes(load, widths(EdgeWork::extremum), cuts),
              predict_passes(load, widths(EdgeWork::extremum), {}));
    PassCosts dear;
    dear.attention_row *= 10;
    EXPECT_GT(predict_passes(load, widths(EdgeWork::attention), cuts, dear),
              predict_passes(load, widths(EdgeWork::attention), cuts));
    EXPECT_EQ(predict_passes(load, widths(EdgeWork::extremum), cuts, dear),
              predict_passes(load, widths(EdgeWork::extremum), cuts));
  }
}

// Half of products on each of two H100s: attention in two passes took longer than in one, a maximum
// took less time.
TEST(HaloSchedule, AttentionOnTwoGpusWaitsForItsRows) {
  constexpr RankLoad kHalf{1'224'514, 1'224'515, 31'000'000, 31'000'000};
  EXPECT_TRUE(halo_cuts(kHalf, {256, 288, EdgeWork::attention}).empty());
  EXPECT_EQ(halo_cuts(kHalf, {400, 400, EdgeWork::extremum}).size(), 1u);
}

TEST(HaloSchedule, CutsMoveToTheEndsOfBlocksThatAreNear) {
  const auto free = halo_cuts(kProducts, kWidth64);
  ASSERT_GT(free.size(), 1u);
  const std::uint64_t near = free[0] + kProducts.halo / 50, far = free[0] + kProducts.halo / 5;
  EXPECT_EQ(halo_cuts(kProducts, kWidth64, {near, kProducts.halo})[0], near);
  EXPECT_EQ(halo_cuts(kProducts, kWidth64, {far, kProducts.halo})[0], free[0]);
  EXPECT_EQ(halo_cuts(kProducts, kWidth64, {near, kProducts.halo}).back(), kProducts.halo);
}

// Whatever the blocks, the passes cover the halo, in order.
TEST(HaloSchedule, MovedCutsCoverTheHalo) {
  for (const RankLoad& load : {kProducts, kReddit, RankLoad{0, 1, 0, 1}, RankLoad{10, 3, 0, 3}})
    for (const std::uint64_t bytes : {4, 256, 4096})
      for (const std::uint64_t tail : {0, 1, 100, 60000}) {
        const std::uint64_t before = load.halo - std::min(load.halo, tail);
        const auto cuts = halo_cuts(load, {bytes, bytes}, {0, before / 2, before, load.halo});
        if (cuts.empty()) continue;
        EXPECT_EQ(cuts.back(), load.halo) << tail;
        EXPECT_TRUE(std::ranges::is_sorted(cuts));
        EXPECT_EQ(std::ranges::adjacent_find(cuts), cuts.end());
      }
}

// A small graph's passes would cost more than they hide.
TEST(HaloSchedule, SmallGraphsAreSummedAtOnce) {
  EXPECT_LE(halo_cuts({1000, 3000, 5000, 15000}, kWidth64).size(), 1u);
}

TEST(HaloSchedule, CutsAtShares) {
  using Cuts = std::vector<std::uint64_t>;
  EXPECT_EQ(cuts_at({0.25, 0.5, 1}, 100), (Cuts{25, 50, 100}));
  EXPECT_EQ(cuts_at({0.25, 0.5}, 100), (Cuts{25, 50, 100}));
  EXPECT_EQ(cuts_at({0.1, 0.2, 0.9}, 3), (Cuts{2, 3}));
  EXPECT_EQ(cuts_at({0.5}, 0), Cuts{});
  EXPECT_EQ(cuts_at({}, 7), Cuts{7});
}

TEST(HaloSchedule, ChunksCoverABlockOnce) {
  const std::vector<std::uint64_t> cuts{10, 25, 60};
  const auto middle = block_chunks(20, 30, cuts);
  ASSERT_EQ(middle.size(), 2u);
  EXPECT_EQ(middle[0].first, 0u);
  EXPECT_EQ(middle[0].rows, 5u);
  EXPECT_EQ(middle[0].pass, 1u);
  EXPECT_EQ(middle[1].first, 5u);
  EXPECT_EQ(middle[1].rows, 25u);
  EXPECT_EQ(middle[1].pass, 2u);
  EXPECT_TRUE(block_chunks(20, 0, cuts).empty());
  EXPECT_EQ(block_chunks(0, 60, cuts).size(), 3u);
}

}  // namespace
}  // namespace plait
