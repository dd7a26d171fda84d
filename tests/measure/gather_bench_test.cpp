// Gathers by reads and by messages, on one rank; `plait study gathers` checks them on several.
#include "plait/measure/gather_bench.h"

#include <gtest/gtest.h>

#include <vector>

namespace plait {
namespace {

TEST(GatherBench, BothWaysBringTheRows) {
  const auto world = World::alone();
  for (const std::uint64_t width : {1u, 3u, 16u, 65u})
    for (const std::vector<std::uint64_t>& ids :
         {std::vector<std::uint64_t>{}, {4}, {0, 4, 4, 2, 0, 1, 3, 3}}) {
      GatherBench bench(*world, {.rows = 5, .width = width});
      bench.set_ids(ids);
      EXPECT_EQ(bench.bytes(), ids.size() * width * sizeof(float));
      EXPECT_EQ(bench.crossing(), 0);
      for (const GatherWay way : {GatherWay::reads, GatherWay::messages}) {
        EXPECT_EQ(bench.check(way), 0) << to_string(way) << ", width " << width;
        EXPECT_GT(bench.time(way, {.repetitions = 1, .seconds = 0}).median(), 0);
      }
    }
}

TEST(GatherBench, TakesOtherIds) {
  const auto world = World::alone();
  GatherBench bench(*world, {.rows = 1000, .width = 7});
  for (const std::uint64_t count : {10u, 3000u, 1u}) {
    std::vector<std::uint64_t> ids(count);
    for (std::uint64_t i = 0; i < count; ++i) ids[i] = i * 7919 % 1000;
    bench.set_ids(ids);
    EXPECT_EQ(bench.check(GatherWay::messages), 0);
    EXPECT_EQ(bench.check(GatherWay::reads), 0);
  }
}

}  // namespace
}  // namespace plait
