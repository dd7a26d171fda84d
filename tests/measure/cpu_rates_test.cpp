#include "plait/measure/cpu_rates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plait/world/gather.h"
#include "tests/world/ranks.h"

namespace plait::test {
namespace {

// Every rank has the same values, each rate of the CPU once, and all of them can be.
const RankProgram kMeasure("measure", [](World& world) {
  const MachineRates rates = measure_cpu_rates(world);
  std::vector<double> values;
  for (const MeasuredRate& one : rates) {
    values.push_back(one.value);
    const RateTraits& traits = traits_of(one.rate);
    expect(std::isfinite(one.value) && one.value > 0, std::string(traits.name));
    expect(traits.by_row == (one.row_bytes > 0), std::string(traits.name) + " by row");
    // Anything from a tenth of what a slow disk reads to what no memory does.
    if (traits.unit == "B/s") expect(one.value > 1e6 && one.value < 1e14, std::string(traits.name));
    if (traits.unit == "s") expect(one.value < 10, std::string(traits.name));
  }
  for (const auto& others : gather_vectors(world, values))
    expect(others == values, "ranks have the same values");
  std::vector<Rate> by_row{Rate::local_rows, Rate::cached_rows}, single{Rate::copy, Rate::launch};
  if (world.size() > 1) {
    by_row.insert(by_row.end(), {Rate::all_peer_rows, Rate::peer_rows});
    single.push_back(Rate::barrier);
  }
  for (const Rate rate : by_row)
    for (const std::uint64_t bytes : measured_row_bytes())
      expect(value_of(rates, rate, bytes).has_value(), std::string(traits_of(rate).name));
  for (const Rate rate : single)
    expect(value_of(rates, rate).has_value(), std::string(traits_of(rate).name));
  expect(!value_of(rates, Rate::engine_push).has_value(), "no rates of GPUs");
});

class MachineRatesOnRanks : public testing::TestWithParam<int> {};

TEST_P(MachineRatesOnRanks, AreTheSameOnAll) {
  const Outcome outcome =
      run_job({.program = "measure", .ranks = GetParam(), .timeout_ms = kPatient});
  EXPECT_EQ(outcome.code, 0) << outcome.all_errors();
}

#ifdef PLAIT_SANITIZED  // a measurement takes more than a minute
INSTANTIATE_TEST_SUITE_P(Ranks, MachineRatesOnRanks, testing::Values(2));
#else
INSTANTIATE_TEST_SUITE_P(Ranks, MachineRatesOnRanks, testing::Values(1, 2, 3));
#endif

}  // namespace
}  // namespace plait::test
