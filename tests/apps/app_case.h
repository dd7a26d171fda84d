// What every analytics app must do, on either device: its result passes its own verifier, and is
// bit by bit what one rank on the CPU finds, on the same graph placed in any way.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "plait/apps/app.h"
#include "plait/base/error.h"
#include "plait/world/gather.h"
#include "tests/support/drawings.h"
#include "tests/world/ranks.h"

namespace plait::test {

inline constexpr std::array kSchemes{PartitionScheme::edges, PartitionScheme::vertices,
                                     PartitionScheme::hash, PartitionScheme::metis};

// Collective. Returns the answer of the last run; its columns have all vertices on rank 0, and none
// on the others.
inline AppResult answer_of(World& world, const App& app, const Partition& partition, AppRun& run) {
  AppResult result{.columns = run.columns(app.columns), .facts = run.facts()};
  gather_columns(world, partition, result);
  return result;
}

// Returns all that a result says, with numbers as their bits.
inline std::string bits_of(const AppResult& result, bool with_columns) {
  std::string all;
  const auto add = [&](const auto& values) {
    all.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  for (const AppColumn& column : result.columns)
    if (all += column.name + ":"; with_columns) std::visit(add, column.values);
  for (const AppFact& fact : result.facts) {
    all += fact.name + "=";
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
            add(std::span(&value, 1));
          else
            add(value);
        },
        fact.value);
  }
  return all;
}

// Returns the first place in which columns differ, for a message.
inline std::string difference(const AppResult& result, const AppResult& expected) {
  for (std::size_t k = 0; k < std::min(result.columns.size(), expected.columns.size()); ++k) {
    const AppColumn& column = result.columns[k];
    if (column.values.index() != expected.columns[k].values.index()) return column.name + ": type";
    std::string text;
    std::visit(
        [&](const auto& values) {
          const auto& others =
              std::get<std::remove_cvref_t<decltype(values)>>(expected.columns[k].values);
          if (values.size() != others.size()) text = column.name + ": size";
          for (std::size_t v = 0; v < values.size() && text.empty(); ++v)
            if (std::memcmp(&values[v], &others[v], sizeof values[v]) != 0)
              text = fmt::format("{} of vertex {} is {}, not {}", column.name, v, values[v],
                                 others[v]);
        },
        column.values);
    if (!text.empty()) return text;
  }
  return "the facts";
}

// Gives an option a value, as its kind has it.
inline void set_option(AppSettings& settings, const std::string& name, std::uint64_t value) {
  std::visit([&]<class T>(T& to) { to = static_cast<T>(value); }, settings[name]);
}

// Returns the settings of run `turn`: the standard; then others, if there are such options: another
// source or kind of components, a higher resolution, and the edges' weights.
inline AppSettings settings_of(const App& app, const Dataset& dataset, int turn) {
  AppSettings settings(app.options);
  for (const AppOption& option : app.options) {
    if (std::string(option.name) == "source" && dataset.vertices() > 0 && turn > 0)
      set_option(settings, "source",
                 std::mt19937(static_cast<unsigned>(turn))() % dataset.vertices());
    if (std::string(option.name) == "strong") set_option(settings, "strong", turn > 0);
    if (std::string(option.name) == "resolution" && turn > 0) set_option(settings, "resolution", 3);
    if (std::string(option.name) == "weighted")
      set_option(settings, "weighted", turn > 0 && is_weighted(dataset.graph));
  }
  return settings;
}

inline bool is_taken(const App& app, const Dataset& dataset) {
  try {
    app.check(dataset, AppSettings(app.options));
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

// Returns the answer of one rank on the CPU.
inline AppResult found_alone(const App& app, const Dataset& dataset, const AppSettings& settings) {
  const auto world = World::alone();
  const Partition partition = make_partition(PartitionScheme::edges, dataset, 1);
  SpreadGraph graph(*world, dataset, partition, false);
  const auto run = app.on_cpu(graph);
  run->run(settings);
  return answer_of(*world, app, partition, *run);
}

// Checks apps on graphs, and counts the graphs that each has been checked on.
class AppChecks {
 public:
  AppChecks(World& world, bool gpu) : world_(world), gpu_(gpu) {}

  // Collective. An app that refuses the graph is given the same with weights.
  void check(const Drawing& drawing, PartitionScheme scheme) {
    ++graphs_;
    std::vector<const App*> all;
    for (const App& app : apps()) all.push_back(&app);
    const Dataset dataset = drawing.dataset();
    const std::vector<const App*> refused = check_taken(dataset, scheme, all);
    if (!refused.empty() && !drawing.weighted) check_taken(drawing.dataset(true), scheme, refused);
  }

  // Throws Error unless every app has taken most graphs.
  void expect_many() const {
    for (const App& app : apps())
      expect(counts_.contains(app.name) && 2 * counts_.at(app.name) > graphs_,
             fmt::format("{} takes few graphs", app.name));
  }

 private:
  // Collective. Returns the apps that refuse the graph.
  std::vector<const App*> check_taken(const Dataset& dataset, PartitionScheme scheme,
                                      const std::vector<const App*>& some) {
    std::vector<const App*> refused;
    const Partition partition = make_partition(scheme, dataset, world_.size());
    SpreadGraph graph(world_, dataset, partition, gpu_);
    for (const App* const app : some) {
      if (!is_taken(*app, dataset)) {
        refused.push_back(app);
        continue;
      }
      ++counts_[app->name];
      const auto run = gpu_ ? app->on_gpu(graph) : app->on_cpu(graph);
      for (int turn = 0; turn < 2; ++turn) {
        const AppSettings settings = settings_of(*app, dataset, turn);
        const std::string where = fmt::format("{}, {}, partition {}, turn {}", app->name,
                                              dataset.name, to_string(scheme), turn);
        run->run(settings);
        check_result(*app, dataset, settings, answer_of(world_, *app, partition, *run), where);
      }
    }
    return refused;
  }

  void check_result(const App& app, const Dataset& dataset, const AppSettings& settings,
                    const AppResult& result, const std::string& where) {
    expect(result.columns.size() == app.columns.size(), where + ": the number of columns");
    for (std::size_t k = 0; k < app.columns.size(); ++k)
      expect(result.columns[k].name == app.columns[k].name &&
                 std::holds_alternative<std::vector<std::int64_t>>(result.columns[k].values) ==
                     app.columns[k].whole,
             where + ": the kinds of columns");
    expect(result.facts.size() == app.facts.size(), where + ": the number of facts");
    for (std::size_t k = 0; k < app.facts.size(); ++k)
      expect(result.facts[k].name == app.facts[k], where + ": the names of facts");
    const std::string facts = bits_of(result, false);
    for (const std::string& of_rank : gather_at(world_, 0, facts))
      expect(of_rank == facts, where + ": ranks state different facts");
    if (world_.rank() != 0) return;
    try {
      app.verify(dataset, settings, result);
    } catch (const MismatchError& error) {
      expect(false, where + ": " + error.what());
    }
    if (world_.size() == 1 && !gpu_) return;
    const AppResult expected = found_alone(app, dataset, settings);
    expect(bits_of(result, true) == bits_of(expected, true),
           where + ": one rank finds another answer: " + difference(result, expected));
  }

  World& world_;
  const bool gpu_;
  std::map<std::string, std::size_t> counts_;
  std::size_t graphs_ = 0;
};

// The friendships of Zachary, "An information flow model for conflict and fission in small groups",
// Journal of Anthropological Research 33, 1977, in the usual order of the 34 members.
inline Drawing karate_club() {
  constexpr std::array<std::array<std::uint64_t, 2>, 78> kEdges{{
      {0, 1},   {0, 2},   {0, 3},   {0, 4},   {0, 5},   {0, 6},   {0, 7},   {0, 8},   {0, 10},
      {0, 11},  {0, 12},  {0, 13},  {0, 17},  {0, 19},  {0, 21},  {0, 31},  {1, 2},   {1, 3},
      {1, 7},   {1, 13},  {1, 17},  {1, 19},  {1, 21},  {1, 30},  {2, 3},   {2, 7},   {2, 8},
      {2, 9},   {2, 13},  {2, 27},  {2, 28},  {2, 32},  {3, 7},   {3, 12},  {3, 13},  {4, 6},
      {4, 10},  {5, 6},   {5, 10},  {5, 16},  {6, 16},  {8, 30},  {8, 32},  {8, 33},  {9, 33},
      {13, 33}, {14, 32}, {14, 33}, {15, 32}, {15, 33}, {18, 32}, {18, 33}, {19, 33}, {20, 32},
      {20, 33}, {22, 32}, {22, 33}, {23, 25}, {23, 27}, {23, 29}, {23, 32}, {23, 33}, {24, 25},
      {24, 27}, {24, 31}, {25, 31}, {26, 29}, {26, 33}, {27, 33}, {28, 31}, {28, 33}, {29, 32},
      {29, 33}, {30, 32}, {30, 33}, {31, 32}, {31, 33}, {32, 33},
  }};
  std::vector<Edge> edges;
  for (const auto& [a, b] : kEdges) edges.push_back({a, b, static_cast<float>(1 + (a + b) % 3)});
  return {.name = "karate club", .vertices = 34, .edges = both_ways(edges)};
}

}  // namespace plait::test
