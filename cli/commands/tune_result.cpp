#include "cli/commands/tune_result.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "cli/options/get_options.h"
#include "cli/svg/heat_map.h"
#include "plait/base/file.h"
#include "plait/base/printable.h"

namespace plait::cli {
namespace {

bool is_of(const MeasuredRoute& one, const Route& route) {
  return one.partition == route.partition && one.way == TrialWay{route.strategy, 0, route.get};
}

// Returns the way that a run at this width takes if these measurements are known.
Route chosen_route(const TuneResult& result, std::uint64_t width, const MeasuredRoutes& known) {
  RouteQuestion question = result.question;
  question.widths = {width};
  const auto counts = [&](PartitionScheme scheme) {
    const auto found = result.counts.find(scheme);
    return found == result.counts.end() ? nullptr : &found->second;
  };
  const auto fits = [&](const Route& route) {  // what was tried and does not fit has no time
    return !result.counts.contains(route.partition) ||
           std::ranges::any_of(result.measured, [&](const auto& one) { return is_of(one, route); });
  };
  return choose(question, known, counts, fits).route;
}
Route chosen_route(const TuneResult& result, std::uint64_t width) {
  return chosen_route(result, width, {.routes = result.measured, .note = {}});
}

// Returns how much longer a way takes at one width than the best way measured: 0.05 is 5%. Returns
// nothing for a way that was not measured.
std::optional<double> regret_of(const TuneResult& result, std::uint64_t width, const Route& route) {
  double best = std::numeric_limits<double>::infinity();
  std::optional<double> taken;
  for (const MeasuredRoute& one : result.measured) {
    if (one.kind.widths.front() != width) continue;
    best = std::min(best, one.ms);
    if (is_of(one, route)) taken = one.ms;
  }
  return taken ? std::optional(*taken / best - 1) : std::nullopt;
}

std::string way_of(const Route& route) {
  return fmt::format("{} with {}{}", to_string(route.partition), to_string(route.strategy),
                     changes_text(route.get));
}

json optional_json(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

// Prints one row per way, with all widths side by side; cell(i) returns the text of measurement i.
template <class Cell>
void print_table(const TuneResult& result, const Cell& cell) {
  fmt::print("{:<10} {:<10}", "partition", "strategy");
  for (const std::uint64_t width : result.widths) fmt::print(" {:>10}", width);
  const std::size_t count = result.widths.size();
  for (std::size_t first = 0; first < result.measured.size(); first += count) {
    const MeasuredRoute& one = result.measured[first];
    fmt::print("\n{:<10} {:<10}", to_string(one.partition), to_string(one.way.strategy));
    for (std::size_t i = first; i < first + count; ++i) fmt::print(" {:>10}", cell(i));
    fmt::print("{}", changes_text(one.way.get));
  }
  fmt::print("\n");
}

// Returns the name of settings in a list.
std::string settings_name(const GetTuning& settings) {
  const std::string text = options_text(settings);
  return text.empty() ? "default settings" : text;
}

void print_settings(const TuneResult& result, const SettingsSearched& search) {
  fmt::print("settings of get on partition {}: median ms by width\n{:<40}",
             to_string(search.partition), "");
  for (const std::uint64_t width : result.widths) fmt::print(" {:>10}", width);
  fmt::print("\n");
  for (const SettingsTrial& one : search.tried) {
    fmt::print("{:<40}", settings_name(one.settings));
    for (const double ms : one.ms) fmt::print(" {:>10.3f}", ms);
    fmt::print("{}\n", one.left_out.empty() ? "" : " not measured: " + printable(one.left_out));
  }
  const std::vector<std::size_t> fastest = fastest_settings(search.tried);
  for (std::size_t w = 0; w < fastest.size(); ++w)
    fmt::print("fastest at width {}: {}\n", result.widths[w],
               settings_name(search.tried[fastest[w]].settings));
}

}  // namespace

json rows_to_json(const TuneResult& result) {
  json rows = json::array();
  for (std::size_t i = 0; i < result.measured.size(); ++i) {
    const MeasuredRoute& one = result.measured[i];
    rows.push_back({{"partition", to_string(one.partition)},
                    {"strategy", to_string(one.way.strategy)},
                    {"options", options_text(one.way.get)},
                    {"width", one.kind.widths.front()},
                    {"median_ms", one.ms},
                    {"predicted_ms", optional_json(result.predicted_ms[i])}});
  }
  return rows;
}

json settings_to_json(const TuneResult& result) {
  json searches = json::array();
  for (const SettingsSearched& search : result.settings) {
    json tried = json::array(), fastest = json::array();
    for (const SettingsTrial& one : search.tried)
      tried.push_back({{"options", options_text(one.settings)},
                       {"median_ms", one.ms},
                       {"left_out", one.left_out.empty() ? json(nullptr) : json(one.left_out)}});
    for (const std::size_t one : fastest_settings(search.tried))
      fastest.push_back(options_text(search.tried[one].settings));
    searches.push_back(
        {{"partition", to_string(search.partition)}, {"tried", tried}, {"fastest", fastest}});
  }
  return searches;
}

json chosen_to_json(const TuneResult& result) {
  json chosen = json::array();
  for (const std::uint64_t width : result.widths) {
    const Route route = chosen_route(result, width);
    const Route without = chosen_route(result, width, {});
    chosen.push_back({{"width", width},
                      {"partition", to_string(route.partition)},
                      {"strategy", to_string(route.strategy)},
                      {"options", options_text(route.get)},
                      {"unmeasured_partition", to_string(without.partition)},
                      {"unmeasured_strategy", to_string(without.strategy)},
                      {"regret", optional_json(regret_of(result, width, without))}});
  }
  return chosen;
}

void print_times(const TuneResult& result) {
  fmt::print("{} on {}: median ms of y = A x by width\n", printable(result.graph), result.ranks);
  const auto in_ms = [](double ms) { return fmt::format("{:.3f}", ms); };
  print_table(result, [&](std::size_t i) { return in_ms(result.measured[i].ms); });
  if (std::ranges::any_of(result.predicted_ms, [](const auto& ms) { return ms.has_value(); })) {
    fmt::print("predicted ms\n");
    print_table(result, [&](std::size_t i) {
      const std::optional<double> ms = result.predicted_ms[i];
      return ms ? in_ms(*ms) : std::string("-");
    });
  }
  for (const SettingsSearched& search : result.settings) print_settings(result, search);
  for (const std::uint64_t width : result.widths) {
    const Route without = chosen_route(result, width, {});
    const std::optional<double> regret = regret_of(result, width, without);
    fmt::print("width {}: {}; without measurements {}{}\n", width,
               way_of(chosen_route(result, width)), way_of(without),
               regret ? fmt::format(", {:.1f}% above the best", 100 * *regret)
                      : ", which was not measured");
  }
  const PartitionScheme standard = result.question.route.partition;
  if (!result.counts.contains(standard))
    fmt::print(
        "runs take these ways with --partition alone: others are compared with partition {}, "
        "which --partitions leaves out\n",
        to_string(standard));
}

void write_heat_map(const TuneResult& result, const std::string& path) {
  HeatMap map{.title = fmt::format("{} on {}: ms of y = A x (frame: chosen)",
                                   printable(result.graph), result.ranks),
              .column_title = "width",
              .rows = {},
              .columns = {},
              .values = {},
              .chosen = {}};
  for (const std::uint64_t width : result.widths) map.columns.push_back(std::to_string(width));
  const std::size_t count = result.widths.size();
  for (std::size_t first = 0; first < result.measured.size(); first += count) {
    const MeasuredRoute& one = result.measured[first];
    map.rows.push_back(fmt::format("{}, {}{}", to_string(one.partition),
                                   to_string(one.way.strategy), changes_text(one.way.get)));
    std::vector<double> times;
    for (std::size_t c = 0; c < count; ++c) times.push_back(result.measured[first + c].ms);
    map.values.push_back(std::move(times));
  }
  for (const std::uint64_t width : result.widths) {
    const Route route = chosen_route(result, width);
    const std::string row = fmt::format("{}, {}{}", to_string(route.partition),
                                        to_string(route.strategy), changes_text(route.get));
    const auto found = std::ranges::find(map.rows, row);
    map.chosen.push_back(found == map.rows.end() ? -1 : static_cast<int>(found - map.rows.begin()));
  }
  AtomicFile file(path);
  file.write(draw_heat_map(map));
  file.commit();
}

}  // namespace plait::cli
