#include "plait/plan/cpu_cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace plait {
namespace {

// Rows of 32 bytes: 1 ns in a cache of 64 MiB, 5 ns in memory.
const MachineRates kRates{{Rate::cached_rows, 32, 32e9}, {Rate::local_rows, 32, 6.4e9},
                          {Rate::copy, 0, 4e9},          {Rate::launch, 0, 1e-6},
                          {Rate::barrier, 0, 3e-6},      {Rate::cache, 0, 64 << 20}};

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
  const double placed = 3.8 * rows * 32 * byte, brought = 2.9 * rows * 32 * byte, edges = 1.33e7;
  const auto expect = [&](Strategy strategy, double far, double seconds) {
    EXPECT_NEAR(predicted(strategy, far), seconds, 1e-12) << to_string(strategy) << " " << far;
  };
  expect(Strategy::bulk, 0, step + placed + brought + edges * 1e-9);
  expect(Strategy::bulk, 1, step + placed + brought + edges * 5e-9);
  expect(Strategy::bulk, 0.5, step + placed + brought + edges * 3e-9);
  expect(Strategy::get, 1, step + placed + 2 * edges * 5e-9);
  // Replicate brings the large part the 1000 rows of the small one.
  expect(Strategy::replicate, 1, step + placed + 2.9 * 1000 * 32 * byte + edges * 5e-9);
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

// Times of ten graphs on two and four ranks, which shared two cores with other work: medians of the
// same run differ by a sixth from one time to the next, so that nothing can be predicted closer.
TEST(CpuCostModel, PredictsMeasuredTimes) {
  using Case = std::pair<std::string, int>;  // graph, ranks
  std::map<int, MachineRates> rates;
  std::map<Case, PartitionQuality> parts;
  std::map<std::string, double> spans;
  std::vector<double> errors;
  std::ifstream file(PLAIT_SOURCE_DIR "/bench/measured/ranks-cpu.json");
  for (std::string text; std::getline(file, text);) {
    const nlohmann::json line = nlohmann::json::parse(text), of = line["case"];
    const int ranks = of["ranks"];
    if (line["bench"] == "cpu-rates") {
      rates[ranks].push_back(
          {parse_rate(of["rate"].get<std::string>()), of["row_bytes"], line["value"]});
      continue;
    }
    const std::string graph = of["graph"];
    PartitionQuality& quality = parts[{graph, ranks}];
    if (line["bench"] == "cpu-parts") {
      spans[graph] = line["averaged_edge_span"].get<double>();
      quality.parts.push_back({.vertices = line["vertices"],
                               .edges = line["edges"],
                               .remote_edges = line["remote_edges"],
                               .halo_rows = line["halo_rows"],
                               .summed = {}});
      continue;
    }
    std::uint64_t vertices = 0;
    for (const PartQuality& part : quality.parts) vertices += part.vertices;
    const auto seconds = predict_cpu_aggregation(
        parse_strategy(of["strategy"].get<std::string>()), quality,
        {.width = of["width"], .far_share = far_share(spans[graph], vertices)}, rates[ranks]);
    errors.push_back(std::abs(1e3 * seconds.value() / line["least_ms"].get<double>() - 1));
  }
  ASSERT_EQ(errors.size(), 180u);
  std::ranges::sort(errors);
  RecordProperty("median_error", std::to_string(errors[90]));
  RecordProperty("largest_error", std::to_string(errors.back()));
  EXPECT_LT(errors[90], 0.2);
  EXPECT_LT(errors[162], 0.5);
}

TEST(FarShare, IsOneOfRandomEdgesAndNoneOfARing) {
  EXPECT_DOUBLE_EQ(far_share(1000.0 / 3, 1000), 1);
  EXPECT_DOUBLE_EQ(far_share(999, 1000), 1);
  EXPECT_DOUBLE_EQ(far_share(2, 6000), 0.001);
  EXPECT_EQ(far_share(0, 0), 0);
}

}  // namespace
}  // namespace plait
