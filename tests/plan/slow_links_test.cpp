// A machine without NVLink, simulated by a profile: its plans differ from those of the built-in
// profile, and they are whole. tests/gpu/test_machine.py runs them.
#include <gtest/gtest.h>

#include <random>

#include "plait/base/file.h"
#include "plait/plan/choose.h"
#include "plait/plan/halo_schedule.h"

namespace plait {
namespace {

MachineProfile slow_links() {
  const std::string path = PLAIT_SOURCE_DIR "/tests/gpu/slow_links.json";
  return parse_machine(MappedFile::open(path)->text(), path);
}

TEST(SlowLinks, AreThoseOf25GigabytesPerSecond) {
  const MachineProfile profile = slow_links(), built_in;
  EXPECT_EQ(profile.passes.link, 25e9);
  EXPECT_EQ(profile.nccl_link, 25e9);
  EXPECT_EQ(profile.peer_reads, 25e9);
  EXPECT_EQ(profile.passes.edge_byte, built_in.passes.edge_byte);
}

// Every row of every block arrives in one chunk, in the pass that waits for it, whatever the
// counts.
void check_whole(const std::vector<std::uint64_t>& blocks, const std::vector<std::uint64_t>& cuts) {
  std::uint64_t begin = 0;
  for (const std::uint64_t rows : blocks) {
    std::uint64_t next = 0;
    for (const HaloChunk& chunk : block_chunks(begin, rows, cuts)) {
      ASSERT_EQ(chunk.first, next);
      ASSERT_GT(chunk.rows, 0u);
      next += chunk.rows;
      ASSERT_LT(chunk.pass, cuts.size());
      ASSERT_LE(begin + next, cuts[chunk.pass]);
      ASSERT_GE(begin + chunk.first, chunk.pass == 0 ? 0 : cuts[chunk.pass - 1]);
    }
    ASSERT_EQ(next, cuts.empty() ? 0 : rows);  // without cuts, rows arrive as blocks
    begin += rows;
  }
}

TEST(SlowLinks, SchedulesDifferAndAreWhole) {
  const MachineProfile slow = slow_links(), fast;
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t most) { return random() % most; };
  int differ = 0;
  for (int k = 0; k < 300; ++k) {
    RankLoad load{.own = below(1u << 20) + 1,
                  .halo = 0,
                  .local_edges = below(1u << 26),
                  .remote_edges = below(1u << 26)};
    std::vector<std::uint64_t> blocks(below(7) + 1), ends;
    for (std::uint64_t& rows : blocks) {
      rows = below(1u << (1 + below(20)));
      ends.push_back(load.halo += rows);
    }
    const PassWidths width{.y_bytes = 16 * (below(64) + 1), .wire_bytes = 16 * (below(64) + 1)};
    const auto by_slow = halo_cuts(load, width, ends, slow.passes);
    const auto by_fast = halo_cuts(load, width, ends, fast.passes);
    check_whole(blocks, by_slow);
    check_whole(blocks, by_fast);
    if (!by_slow.empty()) {
      EXPECT_EQ(by_slow.back(), load.halo);
    }
    differ += by_slow != by_fast;
    const double time = predict_passes(load, width, by_slow, slow.passes);
    EXPECT_GE(time, predict_passes(load, width, by_slow, fast.passes));
    EXPECT_LE(time, predict_passes(load, width, {}, slow.passes));
  }
  EXPECT_GT(differ, 100);
}

// Two ranks whose rows are dense: half as many sums as rows would cross, at the price that the
// owner's sums do not hide behind the link.
PartitionQuality sums_are_half() {
  constexpr std::uint64_t kRows = 600000, kEdges = 60000000, kRemote = 30000000;
  PartQuality part{.vertices = kRows,
                   .edges = kEdges,
                   .remote_edges = kRemote,
                   .halo_rows = kRows,
                   .dense_rows = kRows,
                   .summed = {}};
  part.summed.rows = kRows / 2;
  part.summed.kept_edges = kEdges - kRemote + kRows / 2;
  part.summed.sums = kRows / 2;
  part.summed.summed_edges = kRemote;
  return {.parts = {part, part}};
}

TEST(SlowLinks, ChooseSumsWhereFastOnesChooseRows) {
  const RouteQuestion question{.route = {.strategy = Strategy::pipelined, .gpu = true},
                               .open_strategy = true,
                               .ranks = 2,
                               .widths = {64}};
  const PartitionQuality quality = sums_are_half();
  const auto counts = [&](PartitionScheme) { return &quality; };
  const auto always = [](const Route&) { return true; };
  const auto chosen = [&](const MachineProfile& profile) {
    return choose(question, {}, counts, always, profile).route.strategy;
  };
  EXPECT_EQ(chosen(MachineProfile()), Strategy::pipelined);
  EXPECT_EQ(chosen(slow_links()), Strategy::partial);
}

}  // namespace
}  // namespace plait
