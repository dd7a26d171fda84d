// Compares predictions with the times in bench/measured, which were measured on one and on four
// H200s.
#include "plait/plan/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "plait/plan/choose.h"
#include "plait/plan/halo_schedule.h"

namespace plait {
namespace {

using nlohmann::json;

std::vector<json> measurements(const std::string& name) {
  std::ifstream file(std::string(PLAIT_SOURCE_DIR "/bench/measured/") + name);
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}

// The partitions of each graph over four ranks.
std::map<std::string, PartitionQuality> recorded_parts() {
  std::map<std::string, PartitionQuality> parts;
  for (const json& line : measurements("parts-4.json")) {
    const json& of = line["case"];
    PartQuality part{.vertices = line["vertices"],
                     .edges = line["edges"],
                     .remote_edges = line["remote_edges"],
                     .dense_rows = line["rows"],
                     .summed = {}};
    part.summed.rows = line["partial"]["rows"];
    part.packed_rows = part.summed.packed_rows = line["partial"]["packed_rows"];  // no sums
    part.summed.kept_edges = line["partial"]["kept_edges"];
    part.summed.sums = line["partial"]["sums"];
    part.summed.summed_edges = line["partial"]["summed_edges"];
    parts[of["graph"].get<std::string>() + " " + of["partition"].get<std::string>()]
        .parts.push_back(part);
  }
  return parts;
}

Route gpu_route(Strategy strategy) { return {.strategy = strategy, .gpu = true}; }

double predicted_ms(Strategy strategy, const PartitionQuality& quality, std::uint64_t width,
                    const MachineProfile& profile = {}) {
  return 1e3 * predict_aggregation(gpu_route(strategy), quality, width, profile).value();
}

// One way to aggregate, on one graph at one width.
struct Case {
  double predicted, measured;
  double error() const { return std::abs(predicted / measured - 1); }
};

// By graph and width.
std::map<std::string, std::vector<Case>> recorded_cases() {
  const auto parts = recorded_parts();
  std::map<std::string, std::vector<Case>> cases;
  for (const char* file : {"aggregate-4.json", "aggregate-4-clusters.json"})
    for (const json& line : measurements(file)) {
      const json& of = line["case"];
      if (of["strategy"] == "cusparse") continue;
      const std::string graph = of["graph"];
      const auto& quality = parts.at(graph + " " + of["partition"].get<std::string>());
      cases[graph + " " + std::to_string(of["width"].get<int>())].push_back(
          {predicted_ms(parse_strategy(of["strategy"].get<std::string>()), quality, of["width"]),
           line["median_ms"]});
    }
  return cases;
}

// The ranks of values within 3% of each other are shared: measurements vary by as much.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    double below = 0;
    for (const double other : values)
      below += other < value / 1.03 ? 1 : other <= value * 1.03 ? 0.5 : 0;
    ranks.push_back(below);
  }
  return ranks;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto mean = [](const auto& x) {
    return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  };
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double da = a[i] - mean(a), db = b[i] - mean(b);
    ab += da * db, aa += da * da, bb += db * db;
  }
  return ab / std::sqrt(aa * bb);
}

void expect_errors(std::vector<double> errors, std::size_t count, double median) {
  ASSERT_EQ(errors.size(), count);
  std::ranges::sort(errors);
  testing::Test::RecordProperty("median_error", std::to_string(errors[count / 2]));
  testing::Test::RecordProperty("largest_error", std::to_string(errors.back()));
  EXPECT_LT(errors[count / 2], median);
  EXPECT_LT(errors.back(), 0.15);
}

TEST(CostModel, PredictsMeasuredTimes) {
  std::vector<double> errors;
  for (const auto& [name, cases] : recorded_cases())
    for (const Case& c : cases) errors.push_back(c.error());
  expect_errors(errors, 72, 0.04);
}

// Whole graphs, whose rows fit in a GPU's cache, or take up to 340 times its room.
TEST(CostModel, PredictsSumsOfOneGpu) {
  std::map<std::string, PartQuality> whole{
      {"papers100M", {.vertices = 111059956, .edges = 1615685872, .summed = {}}}};
  for (const auto& [name, quality] : recorded_parts())
    if (name.ends_with(" edges"))
      for (const PartQuality& part : quality.parts) {
        PartQuality& all = whole[name.substr(0, name.find(' '))];
        all.vertices += part.vertices;
        all.edges += part.edges;
      }
  std::vector<double> errors;
  for (const char* file : {"scaling-aggregate-1-2-4.json", "scaling-papers100M-1-2-4.json"})
    for (const json& line : measurements(file)) {
      const json& of = line["case"];
      if (of["ranks"] != 1 || of["strategy"] != "pipelined") continue;
      PartQuality part = whole.at(of["graph"]);
      const double scale = of["scale"];
      part.vertices = static_cast<std::uint64_t>(scale * static_cast<double>(part.vertices));
      part.edges = static_cast<std::uint64_t>(scale * static_cast<double>(part.edges));
      const double ms = predicted_ms(Strategy::pipelined, {{part}}, of["width"]);
      errors.push_back(std::abs(ms / line["median_ms"].get<double>() - 1));
    }
  expect_errors(errors, 18, 0.05);
}

TEST(CostModel, OrdersStrategiesAndPartitionsAsMeasured) {
  std::vector<double> correlations;
  for (const auto& [name, cases] : recorded_cases()) {
    std::vector<double> predicted, measured;
    for (const Case& c : cases) {
      predicted.push_back(c.predicted);
      measured.push_back(c.measured);
    }
    correlations.push_back(correlation(ranks_of(predicted), ranks_of(measured)));
  }
  ASSERT_EQ(correlations.size(), 12u);
  const double mean = std::accumulate(correlations.begin(), correlations.end(), 0.0) / 12;
  RecordProperty("mean_correlation", std::to_string(mean));
  EXPECT_GT(mean, 0.9);
}

// Links of 25 GB/s, as between hosts.
MachineProfile slow_links() {
  MachineProfile profile;
  profile.passes.link = profile.nccl_link = profile.peer_reads = 25e9;
  return profile;
}

// A star of five million vertices on four GPUs; the owner of the centre reads all others.
PartitionQuality star() {
  PartitionQuality quality;
  PartQuality centre{.vertices = 1,
                     .edges = 4999999,
                     .remote_edges = 4999999,
                     .dense_rows = 4999999,
                     .summed = {}};
  centre.summed = {.rows = 3, .kept_edges = 3};
  PartQuality other{.vertices = 1666667,
                    .edges = 1666667,
                    .remote_edges = 1666667,
                    .dense_rows = 1,
                    .summed = {}};
  other.summed = {.rows = 1, .kept_edges = 1666667, .sums = 1, .summed_edges = 1666667};
  quality.parts = {centre, other, other, other};
  return quality;
}

TEST(CostModel, AStarIsFasterByPartialSums) {
  for (const std::uint64_t width : {16, 64, 128})
    EXPECT_LT(2 * predicted_ms(Strategy::partial, star(), width),
              predicted_ms(Strategy::pipelined, star(), width))
        << width;
}

// Two ranks bring few rows each, all of them picked from a third one.
TEST(CostModel, AStepLastsUntilPickedRowsHaveLeft) {
  const PartQuality reader{.vertices = 1000000,
                           .edges = 1000000,
                           .remote_edges = 1000000,
                           .dense_rows = 1000000,
                           .listed_rows = 1000000,
                           .summed = {}};
  const PartQuality owner{.vertices = 3000000, .packed_rows = 2000000, .summed = {}};
  const PartitionQuality quality{{reader, reader, owner}};
  const double ms = predicted_ms(Strategy::pipelined, quality, 64);
  const MachineProfile profile;
  EXPECT_NEAR(ms, 1e3 * (2000000 * 256 / profile.picked_link + profile.passes.first_row), 1e-6);
  // A slower link is the limit of picked rows, too.
  EXPECT_GT(predicted_ms(Strategy::pipelined, quality, 64, slow_links()),
            1e3 * 2000000 * 256 / 25e9);
}

// Rows of half the bytes; those of whole blocks are converted, and so are written by a kernel.
TEST(CostModel, RowsOfBf16CrossInHalfTheTime) {
  const PartQuality reader{
      .vertices = 1000000, .edges = 1000000, .remote_edges = 1000000, .summed = {}};
  const PartQuality owner{
      .vertices = 3000000, .packed_rows = 2000000, .whole_rows = 3000000, .summed = {}};
  const MachineProfile profile;
  const auto seconds = [&](DType wire) {
    return *predict_aggregation({.strategy = Strategy::pipelined, .wire = wire, .gpu = true},
                                {{reader, owner}}, 64, profile);
  };
  EXPECT_NEAR(seconds(DType::f32), 2000000 * 256 / profile.picked_link + profile.passes.first_row,
              1e-9);
  EXPECT_NEAR(seconds(DType::bf16), 5000000 * 128 / profile.picked_link + profile.passes.first_row,
              1e-9);
}

TEST(CostModel, GetReadsEachRemoteEdge) {
  const auto parts = recorded_parts();
  // docs/performance.md: measured 5.71, 19.3 and 19.8.
  EXPECT_NEAR(predicted_ms(Strategy::get, parts.at("reddit edges"), 16), 5.71, 0.2 * 5.71);
  EXPECT_NEAR(predicted_ms(Strategy::get, parts.at("reddit edges"), 64), 19.3, 0.2 * 19.3);
  EXPECT_NEAR(predicted_ms(Strategy::get, parts.at("products edges"), 64), 19.8, 0.2 * 19.8);
}

TEST(CostModel, ReplicateBringsAllRows) {
  PartitionQuality quality;
  quality.parts.resize(2, {.vertices = 1000000, .edges = 1000000, .summed = {}});
  EXPECT_GT(predicted_ms(Strategy::replicate, quality, 64),
            predicted_ms(Strategy::bulk, quality, 64) + 1e3 * 256e6 / MachineProfile().nccl_link);
}

TEST(CostModel, SlowLinksCostTheirBytes) {
  const auto parts = recorded_parts();
  const PartitionQuality& edges = parts.at("products edges");
  const double link_ms = 1e3 * static_cast<double>(edges.parts[0].dense_rows) * 256 / 25e9;
  const double ms = predicted_ms(Strategy::pipelined, edges, 64, slow_links());
  EXPECT_GT(ms, link_ms);
  EXPECT_LT(ms, 1.1 * link_ms);  // the sums hide behind the link
}

RouteQuestion open_strategy(std::uint64_t width) {
  return {.route = gpu_route(Strategy::pipelined),
          .open_strategy = true,
          .ranks = 4,
          .widths = {width}};
}

bool always(const Route&) { return true; }

Choice chosen(const RouteQuestion& question, const PartitionQuality& quality,
              const std::function<bool(const Route&)>& fits = always) {
  return choose(
      question, {}, [&](PartitionScheme) { return &quality; }, fits);
}

TEST(CostModel, TakesNoWayThatDoesNotFit) {
  std::vector<Strategy> asked;
  const Choice choice = chosen(open_strategy(64), star(), [&](const Route& route) {
    asked.push_back(route.strategy);
    return false;
  });
  EXPECT_EQ(choice.route.strategy, Strategy::pipelined);
  EXPECT_EQ(choice.alternatives.size(), 2u);
  EXPECT_EQ(asked, std::vector{Strategy::partial});
}

TEST(CostModel, ChoosesWhereMuchIsSaved) {
  const auto parts = recorded_parts();
  for (const std::uint64_t width : {16, 64, 128}) {
    EXPECT_EQ(chosen(open_strategy(width), star()).route.strategy, Strategy::partial);
    for (const auto& [name, quality] : parts) {
      const Choice choice = chosen(open_strategy(width), quality);
      EXPECT_EQ(choice.route.strategy, Strategy::pipelined) << name << " " << width;
      EXPECT_EQ(choice.alternatives.size(), 2u);
    }
  }
}

TEST(CostModel, ChoosesWhatTheQuestionAllows) {
  RouteQuestion question = open_strategy(64);
  question.rows = true;  // partial brings sums
  EXPECT_EQ(chosen(question, star()).route.strategy, Strategy::pipelined);
  question.rows = false;
  question.route.exact = true;  // partial sums depend on how the graph is cut
  EXPECT_EQ(chosen(question, star()).route.strategy, Strategy::pipelined);
  question = open_strategy(64);
  question.open_strategy = false;
  EXPECT_EQ(chosen(question, star()).route.strategy, Strategy::pipelined);
  question = open_strategy(64);
  question.route.gpu = false;
  EXPECT_TRUE(chosen(question, star()).alternatives.empty());
}

TEST(CostModel, OtherLinksChooseOtherPlans) {
  const auto parts = recorded_parts();
  // Rows that arrive slowly are summed in fewer passes, because the sums hide behind them; and the
  // partition that saves rows saves their share of the time.
  const auto& edges = parts.at("products edges");
  const auto& clusters = parts.at("products clusters");
  const RankLoad load{.own = edges.parts[0].vertices,
                      .halo = edges.parts[0].dense_rows,
                      .local_edges = edges.parts[0].edges - edges.parts[0].remote_edges,
                      .remote_edges = edges.parts[0].remote_edges};
  EXPECT_NE(halo_cuts(load, {256, 256}, {}, MachineProfile().passes),
            halo_cuts(load, {256, 256}, {}, slow_links().passes));
  const auto gain = [&](const MachineProfile& profile) {
    return predicted_ms(Strategy::pipelined, edges, 64, profile) /
           predicted_ms(Strategy::pipelined, clusters, 64, profile);
  };
  EXPECT_GT(gain(slow_links()), 1.1 * gain(MachineProfile()));
}

TEST(CostModel, HasNoModelOfOtherStrategies) {
  const PartitionQuality quality = star();
  EXPECT_FALSE(predict_aggregation(gpu_route(Strategy::paged), quality, 16).has_value());
  EXPECT_FALSE(predict_aggregation(gpu_route(Strategy::automatic), quality, 16).has_value());
  EXPECT_FALSE(predict_aggregation({.strategy = Strategy::bulk}, quality, 16).has_value());
}

}  // namespace
}  // namespace plait
