// Compares the published models with values computed by hand.
#include "plait/plan/published_models.h"

#include <gtest/gtest.h>

#include "plait/graph/build.h"

namespace plait {
namespace {

TEST(MggModel, IsEquationOne) {
  // 2 * 16 * 64 * 2 floats; 4 * 16 * 4 + 2 * 4 * 4 * 64 bytes; ceil(1001 / 2) warps, 4 in a block.
  const GetTuning tuning{.ps = 16, .dist = 2, .wpb = 4};
  EXPECT_EQ(mgg_model(tuning, 64, {1000, 1001}), (MggModel{4096, 2304, 501, 126}));
  EXPECT_EQ(mgg_model(tuning, 64, {1001, 5}), (MggModel{4096, 2304, 501, 126}));
  EXPECT_EQ(mgg_model({.ps = 1, .dist = 1, .wpb = 1}, 1, {7, 0}), (MggModel{2, 12, 7, 7}));
  EXPECT_EQ(mgg_model(tuning, 64, {}), (MggModel{4096, 2304, 0, 0}));
}

TEST(MggModel, HasTheSpaceOfSearchOfThePaper) {
  const std::uint64_t a100 = 164 << 10;
  const GetTuning most{.ps = 32, .dist = 16, .wpb = 16};
  EXPECT_TRUE(in_mgg_space({.ps = 1, .dist = 1, .wpb = 1}, 602, a100));
  EXPECT_TRUE(in_mgg_space(most, 602, a100));    // 2048 + 77056 bytes
  EXPECT_FALSE(in_mgg_space(most, 1312, a100));  // 2048 + 167936
  EXPECT_TRUE(in_mgg_space(most, 1296, a100));   // 2048 + 165888 = 164 KiB
  EXPECT_FALSE(in_mgg_space({.ps = 33, .dist = 1, .wpb = 1}, 16, a100));
  EXPECT_FALSE(in_mgg_space({.ps = 1, .dist = 17, .wpb = 1}, 16, a100));
  EXPECT_FALSE(in_mgg_space({.ps = 1, .dist = 1, .wpb = 17}, 16, a100));
  EXPECT_FALSE(in_mgg_space({.ps = GetTuning::kWholeRow, .dist = 1, .wpb = 1}, 16, a100));
}

TEST(GnnAdvisorModel, IsEquationsFiveAndSix) {
  // Below 32 floats half a warp works on a row: ngs = 1024 * 16 / 16, and 4 warps * 4 * 16 bytes.
  EXPECT_EQ(gnnadvisor_model(16), (GnnAdvisorModel{1024, 16, 128, 1024, 256}));
  EXPECT_EQ(gnnadvisor_model(64), (GnnAdvisorModel{512, 32, 128, 1024, 1024}));
  EXPECT_EQ(gnnadvisor_model(128), (GnnAdvisorModel{256, 32, 128, 1024, 2048}));
  EXPECT_EQ(gnnadvisor_model(32), (GnnAdvisorModel{1024, 32, 128, 1024, 512}));
  // 1024 * 32 / 602 = 54.4.
  EXPECT_EQ(gnnadvisor_model(602), (GnnAdvisorModel{54, 32, 128, 1016, 9632}));
  // Rows of 16 KiB: 3 of them fit in 48 KB, so 2 warps. ngs = 8.
  EXPECT_EQ(gnnadvisor_model(4096), (GnnAdvisorModel{8, 32, 64, 1024, 32768}));
  EXPECT_EQ(gnnadvisor_model(4096, 96 << 10), (GnnAdvisorModel{8, 32, 128, 1024, 65536}));
  EXPECT_EQ(gnnadvisor_model(100000).ngs, 1u);
  EXPECT_EQ(gnnadvisor_model(100000).tpb, 32u);
}

// Row 0 reads 1 (local) and 2, 3, 4 (remote); row 1 reads 0; row 2 reads nothing; row 3 reads 0, 1.
TEST(CountGroups, CutsLocalAndRemoteNeighbours) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kReads[] = {{0, 1}, {0, 2}, {0, 3}, {0, 4},
                                                                {1, 0}, {3, 0}, {3, 1}};
  EdgeList<std::uint32_t> list{.vertices = 5,
                               .source = Buffer<std::uint32_t>(7),
                               .target = Buffer<std::uint32_t>(7),
                               .weight = {}};
  for (std::size_t e = 0; e < 7; ++e) {
    list.target[e] = kReads[e].first;
    list.source[e] = kReads[e].second;
  }
  const AnyCsr graph = build_csr(std::move(list));
  const Partition partition = Partition::contiguous({0, 2, 5});
  const auto groups = [&](int rank, GetTuning tuning) {
    return count_groups(graph, partition, rank, tuning);
  };
  EXPECT_EQ(groups(0, {.ps = 16}), (GroupCounts{2, 1}));
  EXPECT_EQ(groups(0, {.ps = 2}), (GroupCounts{2, 2}));
  EXPECT_EQ(groups(0, {.ps = 2, .remote_ps = 1}), (GroupCounts{2, 3}));
  EXPECT_EQ(groups(1, {.ps = 1}), (GroupCounts{0, 2}));
  EXPECT_EQ(groups(1, {.ps = GetTuning::kWholeRow}), (GroupCounts{0, 1}));
}

}  // namespace
}  // namespace plait
