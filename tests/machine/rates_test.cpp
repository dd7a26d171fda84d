#include "plait/machine/rates.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "plait/base/error.h"
#include "plait/machine/machine_of_rates.h"

namespace plait {
namespace {

TEST(MachineRates, TheTableNamesEachRateOnce) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < all_rates().size(); ++i) {
    const RateTraits& traits = all_rates()[i];
    EXPECT_EQ(static_cast<std::size_t>(traits.rate), i);
    EXPECT_EQ(&traits_of(traits.rate), &traits);
    EXPECT_EQ(parse_rate(traits.name), traits.rate);
    EXPECT_TRUE(names.insert(traits.name).second) << traits.name;
  }
  EXPECT_THROW(parse_rate("speed"), Error);
}

TEST(MachineRates, InterpolatesTheTimesOfRows) {
  // 32 bytes in 1 ns, 64 in 1 ns, 256 in 4 ns.
  const MachineRates rates{{Rate::copy, 0, 5e9},
                           {Rate::local_rows, 256, 64e9},
                           {Rate::local_rows, 32, 32e9},
                           {Rate::local_rows, 64, 64e9}};
  const auto nanoseconds = [&](double bytes) {
    return 1e9 * seconds_of_row(rates, Rate::local_rows, bytes).value();
  };
  EXPECT_DOUBLE_EQ(nanoseconds(4), 1);
  EXPECT_DOUBLE_EQ(nanoseconds(32), 1);
  EXPECT_DOUBLE_EQ(nanoseconds(48), 1);
  EXPECT_DOUBLE_EQ(nanoseconds(160), 2.5);
  EXPECT_DOUBLE_EQ(nanoseconds(256), 4);
  EXPECT_DOUBLE_EQ(nanoseconds(1024), 16);
  EXPECT_FALSE(seconds_of_row(rates, Rate::peer_rows, 32).has_value());
  EXPECT_FALSE(seconds_of_row(rates, Rate::copy, 32).has_value());
  EXPECT_EQ(value_of(rates, Rate::copy), 5e9);
  EXPECT_EQ(value_of(rates, Rate::local_rows, 64), 64e9);
  EXPECT_FALSE(value_of(rates, Rate::local_rows, 128).has_value());
}

TEST(MachineOfRates, TheRatesOfTheH200GiveItsConstants) {
  const MachineProfile built_in;
  for (const int ranks : {1, 2, 4, 8}) {
    const MachineRates& rates = reference_rates(ranks);
    EXPECT_EQ(to_json(machine_of(built_in.name, rates, ranks)), to_json(built_in)) << ranks;
    EXPECT_EQ(to_json(machine_of(built_in.name, {}, ranks)), to_json(built_in)) << ranks;
  }
}

TEST(MachineOfRates, ConstantsFollowTheirRates) {
  MachineRates half = reference_rates(2);
  for (MeasuredRate& one : half) one.value /= 2;
  const MachineProfile slow = machine_of("half as fast", half, 2), built_in;
  EXPECT_EQ(slow.name, "half as fast");
  EXPECT_DOUBLE_EQ(slow.passes.link, built_in.passes.link / 2);
  EXPECT_DOUBLE_EQ(slow.nccl_link, built_in.nccl_link / 2);
  EXPECT_DOUBLE_EQ(slow.peer_reads, built_in.peer_reads / 2);
  EXPECT_DOUBLE_EQ(slow.peer_row, 2 * built_in.peer_row);
  EXPECT_DOUBLE_EQ(slow.passes.edge_byte, 2 * built_in.passes.edge_byte);
  EXPECT_DOUBLE_EQ(slow.passes.y_byte, 2 * built_in.passes.y_byte);
  EXPECT_DOUBLE_EQ(slow.passes.miss, 2 * built_in.passes.miss);
  EXPECT_DOUBLE_EQ(slow.passes.first_byte, 2 * built_in.passes.first_byte);
  EXPECT_DOUBLE_EQ(slow.passes.first_row, built_in.passes.first_row / 2);  // latencies
  EXPECT_DOUBLE_EQ(slow.passes.pass, built_in.passes.pass / 2);
  // The way in which a kernel cuts rows must not depend on a measurement: bits would.
  EXPECT_EQ(slow.warps_at_once, built_in.warps_at_once);
  EXPECT_EQ(slow.short_group, built_in.short_group);
  EXPECT_EQ(slow.get_partial_sums, built_in.get_partial_sums);
  // What is derived is a profile that ranks can send each other.
  EXPECT_EQ(to_json(parse_machine(to_json(slow), "p")), to_json(slow));
}

}  // namespace
}  // namespace plait
