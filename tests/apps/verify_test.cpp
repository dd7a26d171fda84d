// The verifiers of apps see every single wrong value.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/apps/app_case.h"

namespace plait::test {
namespace {

// Facts that tell how an answer was found, which nothing but another run could compare.
const std::set<std::pair<std::string, std::string>> kTold{};

std::vector<std::int64_t> others_than(std::int64_t value) {
  std::vector<std::int64_t> others{value + 1, value - 1};
  for (const std::int64_t other : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 40})
    if (other != value) others.push_back(other);
  return others;
}
std::vector<std::uint64_t> others_than(std::uint64_t value) { return {value + 1, value + 1000}; }
std::vector<double> others_than(double value) {
  if (!std::isfinite(value)) return {0, 1, 1e9};
  return {value + std::max(1e-3, std::abs(value) / 100), value - 1, value * 2 + 1, INFINITY, NAN};
}

bool is_option(const App& app, const std::string& name) {
  return std::ranges::find(app.options, name, &AppOption::name) != app.options.end();
}

bool is_refused(const App& app, const Dataset& dataset, const AppSettings& settings,
                const AppResult& result) {
  try {
    app.verify(dataset, settings, result);
    return false;
  } catch (const MismatchError&) {
    return true;
  }
}

// Changes each value of each column, and each fact that repeats no option, in several ways.
void change_all(const App& app, const Dataset& dataset, const AppSettings& settings,
                AppResult result) {
  const std::string where = std::string(app.name) + ", " + dataset.name;
  const auto change = [&](auto& value, const std::string& name) {
    const auto right = value;
    for (const auto other : others_than(right)) {
      value = other;
      EXPECT_TRUE(is_refused(app, dataset, settings, result))
          << where << ": " << name << " is " << other << " in place of " << right;
    }
    value = right;
  };
  ASSERT_FALSE(is_refused(app, dataset, settings, result)) << where;
  for (AppColumn& column : result.columns)
    std::visit(
        [&](auto& values) {
          for (std::size_t v = 0; v < values.size(); ++v)
            change(values[v], column.name + " of vertex " + std::to_string(v));
        },
        column.values);
  for (AppFact& fact : result.facts) {
    if (kTold.contains({app.name, fact.name}) || is_option(app, fact.name)) continue;
    std::visit(
        [&](auto& value) {
          if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
            change(value, fact.name);
          else
            for (auto& item : value) change(item, fact.name);
        },
        fact.value);
  }
}

TEST(Verifiers, SeeEveryWrongValue) {
  const std::vector<Drawing> drawings = odd_drawings();
  std::vector<Drawing> graphs{karate_club(), random_drawing(3, 60)};
  for (const char* name : {"grid one way", "islands", "star inwards", "parallel edges", "no edges"})
    graphs.push_back(*std::ranges::find(drawings, name, &Drawing::name));
  graphs.push_back({.name = "renumbered graph",
                    .vertices = 40,
                    .edges = both_ways(random_edges(40, 50, 8)),
                    .weighted = true,
                    .order = 9});
  for (const App& app : apps()) {
    std::size_t taken = 0;
    for (const Drawing& drawing : graphs) {
      Dataset dataset = drawing.dataset();
      if (!is_taken(app, dataset)) dataset = drawing.dataset(true);
      if (!is_taken(app, dataset)) continue;
      ++taken;
      for (const int turn : {0, 1}) {
        const AppSettings settings = settings_of(app, dataset, turn);
        change_all(app, dataset, settings, found_alone(app, dataset, settings));
      }
    }
    EXPECT_GE(taken, 3u) << app.name;
  }
}

}  // namespace
}  // namespace plait::test
