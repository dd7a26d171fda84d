// The regret of what Plait chooses unmeasured: how much longer its way takes than the fastest of
// all ways that were measured, on two H100s (bench/measured/regret-2.json), on two H200s
// (regret-2-h200.json) and on four (aggregate-4.json, with the partitions edges and clusters, and
// regret-zoo-4.json).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plait/plan/choose.h"
#include "plait/plan/cost_model.h"

namespace plait {
namespace {

using nlohmann::json;

// The measured ways of one graph at one width, and the counts of the graph's partitions.
struct RegretCase {
  std::map<std::pair<PartitionScheme, Strategy>, double> ms;
  const std::map<PartitionScheme, PartitionQuality>* counts = nullptr;
  bool set_aside = false;  // from the design of the choice
};

std::vector<json> lines_of(const std::string& name) {
  std::ifstream file(std::string(PLAIT_SOURCE_DIR "/bench/measured/") + name);
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}

// The parity of a graph's name (CRC-32) decides whether it was set aside.
bool set_aside(const std::string& graph) {
  std::uint32_t crc = ~0u;
  for (const char c : graph) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ((~crc) & 1) != 0;
}

// Counts in the order in which bench/regret.py writes them.
PartQuality part_of(const std::vector<std::uint64_t>& n) {
  return {.vertices = n.at(0),
          .edges = n.at(1),
          .remote_edges = n.at(2),
          .halo_rows = n.at(3),
          .dense_rows = n.at(4),
          .listed_rows = n.at(5),
          .packed_rows = n.at(6),
          .summed = {.rows = n.at(7),
                     .listed_rows = n.at(8),
                     .packed_rows = n.at(9),
                     .kept_edges = n.at(10),
                     .sums = n.at(11),
                     .summed_edges = n.at(12)}};
}

PartQuality part_of_four(const json& line) {
  const json& partial = line["partial"];
  PartQuality part{.vertices = line["vertices"],
                   .edges = line["edges"],
                   .remote_edges = line["remote_edges"],
                   .dense_rows = line["rows"],
                   .summed = {}};
  part.summed.rows = partial["rows"];
  part.packed_rows = part.summed.packed_rows = partial["packed_rows"];  // no sums
  part.summed.kept_edges = partial["kept_edges"];
  part.summed.sums = partial["sums"];
  part.summed.summed_edges = partial["summed_edges"];
  return part;
}

// The partitions that are counted for a run.
using Partitions = std::vector<PartitionScheme>;
const Partitions kTraining{PartitionScheme::edges, PartitionScheme::vertices,
                           PartitionScheme::clusters};
const Partitions kOneSum{PartitionScheme::edges, PartitionScheme::vertices};

struct Figures {
  std::vector<double> regrets;  // ascending
  int slower_than_bulk = 0;     // than the fastest bulk of any partition
};
struct Bounds {
  double median, worst;
  int slower_than_bulk;
};

class Regret : public testing::Test {
 protected:
  using Key = std::pair<std::string, std::uint64_t>;

  void add_time(const json& line) {
    const json& of = line["case"];
    const std::string graph = of["graph"];
    RegretCase& c = cases_[{graph, of["width"].get<std::uint64_t>()}];
    c.ms[{parse_partition_scheme(of["partition"].get<std::string>()),
          parse_strategy(of["strategy"].get<std::string>())}] = line["median_ms"];
    c.counts = &counts_.at(graph);
    c.set_aside = set_aside(graph);
  }

  void read(const char* file) {
    for (const json& line : lines_of(file)) {
      if (line["bench"] == "tune") {
        add_time(line);
        continue;
      }
      const json& of = line["case"];
      PartitionQuality& quality =
          counts_[of["graph"].get<std::string>()]
                 [parse_partition_scheme(of["partition"].get<std::string>())];
      for (const json& part : line["parts"])
        quality.parts.push_back(part_of(part.get<std::vector<std::uint64_t>>()));
    }
  }

  void read_four() {
    for (const json& line : lines_of("parts-4.json")) {
      const json& of = line["case"];
      counts_[of["graph"].get<std::string>()]
             [parse_partition_scheme(of["partition"].get<std::string>())]
                 .parts.push_back(part_of_four(line));
    }
    for (const char* file : {"aggregate-4.json", "aggregate-4-clusters.json"})
      for (const json& line : lines_of(file))
        if (line["case"]["strategy"] != "cusparse" && line["case"]["wire"] == "fp32")
          add_time(line);
  }

  // Compares the choice among `partitions` with the best way and with the best bulk on any of
  // `rivals`, in the cases of one half or of both.
  Figures figures(const Partitions& partitions, const Partitions& rivals,
                  std::optional<bool> aside) const {
    Figures found;
    for (const auto& [key, c] : cases_) {
      if (aside && c.set_aside != *aside) continue;
      double best = std::numeric_limits<double>::infinity(), bulk = best;
      for (const auto& [way, ms] : c.ms) {
        if (std::ranges::find(rivals, way.first) == rivals.end()) continue;
        best = std::min(best, ms);
        if (way.second == Strategy::bulk) bulk = std::min(bulk, ms);
      }
      const Route route = chosen(partitions, {key.second}, *c.counts);
      const double ms = c.ms.at({route.partition, route.strategy});
      found.regrets.push_back(ms / best - 1);
      found.slower_than_bulk += ms > kNoise * bulk ? 1 : 0;
    }
    std::ranges::sort(found.regrets);
    return found;
  }

  static Route chosen(const Partitions& partitions, std::vector<std::uint64_t> widths,
                      const std::map<PartitionScheme, PartitionQuality>& counts) {
    const RouteQuestion question{.route = {.strategy = Strategy::pipelined, .gpu = true},
                                 .open_strategy = true,
                                 .open_partition = true,
                                 .ranks = 2,
                                 .widths = std::move(widths),
                                 .times = kOften};
    const auto counts_of = [&](PartitionScheme scheme) -> const PartitionQuality* {
      const bool taken = std::ranges::find(partitions, scheme) != partitions.end();
      return taken && counts.contains(scheme) ? &counts.at(scheme) : nullptr;
    };
    const auto always = [](const Route&) { return true; };
    return choose(question, {}, counts_of, always, MachineProfile{}).route;
  }

  void expect(const Figures& found, std::size_t cases, const Bounds& bounds) const {
    ASSERT_EQ(found.regrets.size(), cases);
    EXPECT_LE(found.regrets[cases / 2], bounds.median);
    EXPECT_LE(found.regrets.back(), bounds.worst);
    EXPECT_LE(found.slower_than_bulk, bounds.slower_than_bulk);
  }

  // Returns predicted times divided by measured ones, ascending, but for `get`, which no choice
  // takes.
  std::vector<double> ratios() const {
    std::vector<double> found;
    for (const auto& [key, c] : cases_)
      for (const auto& [way, ms] : c.ms) {
        if (way.second == Strategy::get) continue;
        const Route route{.strategy = way.second, .partition = way.first, .gpu = true};
        found.push_back(
            1e3 * predict_aggregation(route, c.counts->at(way.first), key.second).value() / ms);
      }
    std::ranges::sort(found);
    return found;
  }

  static constexpr double kNoise = 1.03;  // of measurements
  std::map<std::string, std::map<PartitionScheme, PartitionQuality>> counts_;
  std::map<Key, RegretCase> cases_;
};

// The goal is a median of 5%, at most 15%, and never more than bulk takes. The half that was set
// aside shows where predictions fail: on graphs of a million edges and narrow rows, where a step
// takes 40 us, and where hubs make a pass longer than their counts tell (docs/performance.md).
TEST_F(Regret, OfTrainingOnTwoGpus) {
  read("regret-2.json");
  expect(figures(kTraining, kTraining, false), 28,
         {.median = 0.05, .worst = 0.15, .slower_than_bulk = 0});
  expect(figures(kTraining, kTraining, true), 52,
         {.median = 0.05, .worst = 0.22, .slower_than_bulk = 1});
}

// Four graphs that were measured after all else, each at four widths. A crawl at width 300 misses
// the goal: it is summed fastest in the order of its ids, which parts by clusters do not keep.
TEST_F(Regret, OfTheLastGraphsOnTwoH200s) {
  read("regret-2-h200.json");
  expect(figures(kTraining, kTraining, {}), 16,
         {.median = 0.05, .worst = 0.20, .slower_than_bulk = 0});
  expect(figures(kOneSum, kOneSum, {}), 16, {.median = 0.05, .worst = 0.15, .slower_than_bulk = 0});
}

// No constant was fitted to these graphs. The model does not know which rows an order keeps
// together: a grid and a ring are predicted too slow.
TEST_F(Regret, PredictionsOfTheLastGraphs) {
  read("regret-2-h200.json");
  const std::vector<double> found = ratios();
  ASSERT_EQ(found.size(), 144u);
  const auto near = std::ranges::count_if(found, [](double r) { return r > 0.8 && r < 1.2; });
  RecordProperty("within_a_fifth", std::to_string(near));
  RecordProperty("least", std::to_string(found.front()));
  RecordProperty("most", std::to_string(found.back()));
  EXPECT_GE(near, 80);
  EXPECT_GT(found.front(), 0.55);
  EXPECT_LT(found.back(), 3);
}

// One sum does not repay the search for clusters, which takes thousands of sums. Rivals are the
// partitions that need no search.
TEST_F(Regret, OfOneSumOnTwoGpus) {
  read("regret-2.json");
  expect(figures(kOneSum, kOneSum, false), 28,
         {.median = 0.05, .worst = 0.15, .slower_than_bulk = 0});
  expect(figures(kOneSum, kOneSum, true), 52,
         {.median = 0.05, .worst = 0.15, .slower_than_bulk = 1});
}

// Clusters that cost nothing to find would be the best partition of many of these graphs.
TEST_F(Regret, OfOneSumOnTwoGpusAgainstClusters) {
  read("regret-2.json");
  expect(figures(kOneSum, kTraining, false), 28,
         {.median = 0.05, .worst = 0.35, .slower_than_bulk = 1});
  expect(figures(kOneSum, kTraining, true), 52,
         {.median = 0.08, .worst = 0.70, .slower_than_bulk = 6});
}

TEST_F(Regret, OfTrainingOnFourGpus) {
  read_four();
  expect(figures(kTraining, kTraining, {}), 12,
         {.median = 0.05, .worst = 0.05, .slower_than_bulk = 0});
}

// The graphs of the zoo on which pipelined and partial differ and both were measured. The leaves of
// a binary tree are picked for two ranks, so that their owner sends more rows than any rank is
// brought; the model must see that. At width 16 alone it promises too little of partial.
TEST_F(Regret, OfTheZooOnFourGpus) {
  read("regret-zoo-4.json");
  std::erase_if(cases_, [](const auto& one) { return one.second.ms.size() < 2; });
  expect(figures({PartitionScheme::edges}, {PartitionScheme::edges}, {}), 6,
         {.median = 0.01, .worst = 0.31, .slower_than_bulk = 0});
  cases_.erase({"tree", 16});
  expect(figures({PartitionScheme::edges}, {PartitionScheme::edges}, {}), 5,
         {.median = 0.01, .worst = 0.05, .slower_than_bulk = 0});
}

// plait bench zoo takes one strategy for all its widths. On the star, the wide tree and the
// bipartite graph, partial took less time than the rows of pipelined take to cross.
TEST_F(Regret, OfTheZooTakesTheFasterStrategyForAllWidths) {
  read("regret-zoo-4.json");
  ASSERT_EQ(counts_.size(), 5u);
  for (const auto& [graph, counts] : counts_)
    EXPECT_EQ(chosen({PartitionScheme::edges}, {16, 64, 128}, counts).strategy,
              graph == "small-crawl" ? Strategy::pipelined : Strategy::partial)
        << graph;
}

}  // namespace
}  // namespace plait
