#include "plait/plan/cpu_cost_model.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

// Rows of 32 bytes: 1 ns in a cache of 64 MiB, 5 ns in memory, 10 ns in peers' memory.
const MachineRates kRates{{Rate::cached_rows, 32, 32e9},    {Rate::local_rows, 32, 6.4e9},
                          {Rate::all_peer_rows, 32, 3.2e9}, {Rate::copy, 0, 4e9},
                          {Rate::launch, 0, 1e-6},          {Rate::barrier, 0, 3e-6},
                          {Rate::cache, 0, 64 << 20}};

// Two parts; the second one has more to do.
PartitionQuality two_parts() {
  PartQuality small{
      .vertices = 1000, .edges = 10000, .remote_edges = 5000, .halo_rows = 500, .summed = {}};
  PartQuality large{.vertices = 1 << 20,
                    .edges = 10000000,
                    .remote_edges = 5000000,
                    .halo_rows = 1 << 20,
                    .summed = {}};
  return {.parts = {small, large}};
}

double predicted(Strategy strategy, double far, const MachineRates& rates = kRates) {
  return predict_cpu_aggregation(strategy, two_parts(), {.width = 8, .far_share = far}, rates)
      .value();
}

// The rows that are read take as much as the cache and as the table of the rates.
TEST(CpuCostModel, AddsCopiesAndReads) {
  const double step = 4 * 1e-6 + 2 * 3e-6, rows = 1 << 20, byte = 1 / 4e9;
  const double copies = 3 * rows * 32 * byte;
  EXPECT_NEAR(predicted(Strategy::bulk, 0), step + copies + 1e7 * 1e-9, 1e-12);
  EXPECT_NEAR(predicted(Strategy::bulk, 1), step + copies + 1e7 * 5e-9, 1e-12);
  EXPECT_NEAR(predicted(Strategy::bulk, 0.5), step + copies + 1e7 * 3e-9, 1e-12);
  EXPECT_NEAR(predicted(Strategy::get, 1), step + 2 * rows * 32 * byte + 1e7 * 10e-9, 1e-12);
  // Replicate brings the rows that no edge reads to the small part alone: the large one's halo is
  // 1000 rows.
  EXPECT_NEAR(predicted(Strategy::replicate, 1), step + (2 * rows + 1000) * 32 * byte + 1e7 * 5e-9,
              1e-12);
}

TEST(CpuCostModel, NeedsRates) {
  for (std::size_t left_out = 0; left_out < kRates.size(); ++left_out) {
    MachineRates rates = kRates;
    const Rate rate = rates[left_out].rate;
    rates.erase(rates.begin() + static_cast<std::ptrdiff_t>(left_out));
    const bool needed = rate == Rate::cached_rows || rate == Rate::local_rows || rate == Rate::copy;
    EXPECT_EQ(predict_cpu_aggregation(Strategy::bulk, two_parts(), {8, 1}, rates).has_value(),
              !needed)
        << traits_of(rate).name;
  }
}

TEST(CpuCostModel, HasNoModelOfOtherStrategies) {
  for (const Strategy strategy :
       {Strategy::pipelined, Strategy::partial, Strategy::paged, Strategy::automatic})
    EXPECT_FALSE(predict_cpu_aggregation(strategy, two_parts(), {8, 1}, kRates).has_value())
        << to_string(strategy);
}

TEST(FarShare, IsOneOfRandomEdgesAndNoneOfARing) {
  EXPECT_DOUBLE_EQ(far_share(1000.0 / 3, 1000), 1);
  EXPECT_DOUBLE_EQ(far_share(999, 1000), 1);
  EXPECT_DOUBLE_EQ(far_share(2, 6000), 0.001);
  EXPECT_EQ(far_share(0, 0), 0);
}

}  // namespace
}  // namespace plait
