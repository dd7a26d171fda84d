#include "plait/plan/halo_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plait/base/limits.h"
#include "plait/placement/arrival.h"

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

// A graph of this rank's load as one of many ranks: 1 / ranks of products or of reddit, of which
// every rank reads a share of all other rows.
RankLoad load_of_many(const RankLoad& whole, int ranks, double read) {
  const auto parts = static_cast<std::uint64_t>(ranks);
  const std::uint64_t own = whole.own / parts, edges = whole.remote_edges / parts;
  return {.own = own,
          .halo = static_cast<std::uint64_t>(read * static_cast<double>(own * (parts - 1))),
          .local_edges = edges / parts,
          .remote_edges = edges - edges / parts};
}

// Each part of a block has a signal of its own at the reader, a pass waits for at most one part of
// each block, and the parts of a block are those of its sender and of its reader: on 2 to 32 ranks,
// over slow and fast links, for narrow and wide rows, whatever the sizes of the blocks.
TEST(HaloSchedule, SignalsSufficeForManyRanks) {
  constexpr RankLoad kWholeProducts{2449032, 0, 0, 124'000'000};
  constexpr RankLoad kWholeReddit{232968, 0, 0, 115'000'000};
  std::size_t most = 0;
  for (int ranks = 2; ranks <= kMostGpus; ranks += ranks < 16 ? 1 : 8)
    for (const RankLoad& whole : {kWholeProducts, kWholeReddit})
      for (const double read : {0.01, 0.3, 1.0})
        for (const std::uint64_t bytes : {16, 64, 512, 65536})
          for (const double link : {5e9, 25e9, 375e9, 4e12}) {
            const RankLoad load = load_of_many(whole, ranks, read);
            // Blocks of uneven sizes, also empty ones.
            std::vector<std::uint64_t> ends;
            for (int turn = 1; turn < ranks; ++turn)
              ends.push_back(turn % 3 == 1 && turn > 1
                                 ? ends.back()
                                 : load.halo * static_cast<std::uint64_t>(turn * turn) /
                                       static_cast<std::uint64_t>((ranks - 1) * (ranks - 1)));
            ends.back() = load.halo;
            const auto cuts = halo_cuts(load, {bytes, bytes}, ends, {.link = link});
            std::vector<std::size_t> waited(cuts.size(), 0);
            std::uint64_t begin = 0, rows = 0;
            for (const std::uint64_t end : ends) {
              const auto chunks = block_chunks(begin, end - begin, cuts);
              most = std::max(most, chunks.size());
              ASSERT_LE(chunks.size(), static_cast<std::size_t>(kMostBlockParts));
              for (const HaloChunk& chunk : chunks) ++waited[chunk.pass], rows += chunk.rows;
              begin = end;
            }
            EXPECT_TRUE(cuts.empty() || rows == load.halo);
            for (const std::size_t signals : waited)
              EXPECT_LE(signals, static_cast<std::size_t>(ranks - 1));
          }
  EXPECT_GT(most, 1u);
  RecordProperty("most_parts_of_a_block", std::to_string(most));
}

// A training may try one pass more than the schedule has; a block then has a part more at most.
TEST(HaloSchedule, PassesAreFarBelowTheSignals) {
  std::size_t most = 0;
  for (const std::uint64_t halo : {1000, 1'000'000, 100'000'000})
    for (const double link : {1e9, 375e9})
      for (const std::uint64_t bytes : {4, 256, 65536}) {
        const RankLoad load{halo / 7 + 1, halo, halo * 3, halo * 50};
        most = std::max(most, halo_cuts(load, {bytes, bytes}, {}, {.link = link}).size());
      }
  EXPECT_LT(most + 1, static_cast<std::size_t>(kMostBlockParts));
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
