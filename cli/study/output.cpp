#include "cli/study/output.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "cli/svg/file.h"
#include "cli/svg/heat_map.h"
#include "plait/base/memory.h"
#include "plait/base/printable.h"

namespace plait::cli {
namespace {

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "";
}

// The heading of ratios.
std::string ratio_title(const StudyRun& run) {
  const std::vector<StudyRow>& rows = run.result.rows;
  if (run.study.ratio == StudyRatio::planned) return "measured bytes / planned bytes";
  const bool one = std::ranges::all_of(rows, [](const StudyRow& r) { return r.entry.of.empty(); });
  const std::string other = rows.front().entry.name + (one ? "" : ", or the row in brackets");
  return run.study.ratio == StudyRatio::speedup ? fmt::format("x as fast as {}", other)
                                                : fmt::format("of {}", other);
}

std::string_view to_string(StudyRatio ratio) {
  return ratio == StudyRatio::speedup ? "speedup"
         : ratio == StudyRatio::share ? "share"
                                      : "planned";
}

// Returns the steps in which the time of renumbering comes back, if it does.
std::optional<double> steps_to_repay(const StudyRun& run, const StudyRow& row) {
  const auto step_in = [&](ReorderMethod order) -> const StudyRow* {
    for (const StudyRow& one : run.result.rows)
      if (one.entry.part == StudyPart::step && one.entry.order == order) return &one;
    return nullptr;
  };
  if (row.entry.part != StudyPart::ordering) return {};
  const StudyRow *before = step_in(ReorderMethod::none), *after = step_in(row.entry.order);
  if (before == nullptr || after == nullptr) return {};
  const double saved = before->times.median() - after->times.median();
  if (saved <= 0) return {};
  return row.times.median() / saved;
}

std::string notes(const StudyRun& run, const StudyRow& row) {
  std::string text = row.entry.of.empty() ? "" : fmt::format("  ({})", row.entry.of);
  for (const auto& [key, value] : row.entry.figures)
    text += key.ends_with("_bytes") ? fmt::format("  {} {}", key, format_bytes(whole_bytes(value)))
                                    : fmt::format("  {} {:g}", key, value);
  if (const auto steps = steps_to_repay(run, row))
    text += fmt::format("  repaid after {:.0f} steps", *steps);
  return text;
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

std::string title(const StudyRun& run) {
  const std::string graph = run.result.graph ? printable(run.result.graph->name) + " on " : "";
  return fmt::format("{}{}: {}", graph, run.ranks, run.study.name);
}

// Returns the cells' times; the least of all has a frame.
std::string draw_cells(const StudyRun& run) {
  HeatMap map{.title = title(run) + ", ms",
              .column_title = "dist / wpb",
              .rows = {},
              .columns = {},
              .values = {},
              .chosen = {}};
  for (const StudyRow& row : run.result.rows) {
    add_once(map.rows, row.entry.row);
    add_once(map.columns, row.entry.column);
  }
  map.values.assign(map.rows.size(), std::vector<double>(map.columns.size(),
                                                         std::numeric_limits<double>::quiet_NaN()));
  map.chosen.assign(map.columns.size(), -1);
  const StudyRow& best = *std::ranges::min_element(
      run.result.rows, {}, [](const StudyRow& row) { return row.times.median(); });
  for (const StudyRow& row : run.result.rows) {
    const auto r = std::ranges::find(map.rows, row.entry.row) - map.rows.begin();
    const auto c = std::ranges::find(map.columns, row.entry.column) - map.columns.begin();
    const auto column = static_cast<std::size_t>(c);
    map.values[static_cast<std::size_t>(r)][column] = row.times.median();
    if (&row == &best) map.chosen[column] = static_cast<int>(r);
  }
  return draw_heat_map(map);
}

}  // namespace

void print_text(const StudyRun& run) {
  const StudyResult& result = run.result;
  fmt::print("{}: {}\n{}: {}\n", run.study.name, run.study.question, run.study.paper,
             run.study.claim);
  if (result.graph)
    fmt::print("{} on {}, partition {}: {} vertices, {} edges\n", printable(result.graph->name),
               run.ranks, to_string(run.partition), result.graph->vertices, result.graph->edges);
  else
    fmt::print("without a graph, on {}\n", run.ranks);
  fmt::print("{:<24} {:<11} {:>5} {:>10} {:>10} {:>10} {:>7} {:>7}\n", "way", "timed", "width",
             "median ms", "least", "most", "ratio", "paper");
  for (const StudyRow& row : result.rows)
    fmt::print("{:<24} {:<11} {:>5} {:>10.4f} {:>10.4f} {:>10.4f} {:>7} {:>7}{}\n", row.entry.name,
               to_string(row.entry.part), row.entry.width, row.times.median(), row.times.least(),
               row.times.most(), number(row.ratio), number(row.entry.claim), notes(run, row));
  fmt::print("ratio: {}\n", ratio_title(run));
  for (const auto& [name, why] : result.refused) fmt::print("{} was left out: {}\n", name, why);
}

namespace {

// The row that the ratio of this one refers to.
json ratio_to(const StudyRun& run, const StudyRow& row) {
  if (run.study.ratio == StudyRatio::planned || !row.ratio) return nullptr;
  return row.entry.of.empty() ? run.result.rows.front().entry.name : row.entry.of;
}

}  // namespace

json to_json(const StudyRun& run) {
  const auto optional = [](const std::optional<double>& value) {
    return value ? json(*value) : json(nullptr);
  };
  json rows = json::array(), refused = json::array();
  for (const StudyRow& row : run.result.rows) {
    json one = {{"name", row.entry.name},
                {"timed", to_string(row.entry.part)},
                {"strategy", to_string(row.entry.options.route.strategy)},
                {"order", to_string(row.entry.order)},
                {"width", row.entry.width},
                {"median_ms", row.times.median()},
                {"least_ms", row.times.least()},
                {"most_ms", row.times.most()},
                {"repetitions", row.times.ms.size()},
                {"error", row.error},
                {"link_bytes", row.bytes},
                {"ratio", optional(row.ratio)},
                {"ratio_to", ratio_to(run, row)},
                {"paper_ratio", optional(row.entry.claim)}};
    for (const auto& [key, value] : row.entry.figures) one[key] = value;
    if (row.entry.part == StudyPart::training) one["val_metric_by_epoch"] = row.validation;
    if (row.entry.part == StudyPart::ordering)
      one["repaid_after_steps"] = optional(steps_to_repay(run, row));
    rows.push_back(std::move(one));
  }
  for (const auto& [name, why] : run.result.refused)
    refused.push_back({{"name", name}, {"why", why}});
  const std::optional<StudyGraph>& graph = run.result.graph;
  return {{"study", run.study.name},
          {"paper", run.study.paper},
          {"claim", run.study.claim},
          {"graph", graph ? json(graph->name) : json(nullptr)},
          {"vertices", graph ? json(graph->vertices) : json(nullptr)},
          {"edges", graph ? json(graph->edges) : json(nullptr)},
          {"ranks", run.rank_count},
          {"device", run.device},
          {"partition", graph ? json(to_string(run.partition)) : json(nullptr)},
          {"ratio_is", to_string(run.study.ratio)},
          {"rows", rows},
          {"does_not_fit", refused}};
}

std::string plot_of(const StudyRun& run) {
  if (!run.result.rows.front().entry.row.empty()) return draw_cells(run);
  const bool memory = run.study.ratio == StudyRatio::planned;
  const char* const unit = memory ? "MiB" : "ms";
  NamedBarPlot plot{.title = title(run),
                    .x_title = fmt::format("{} (behind the {}: ratio, {}; paper)", unit,
                                           memory ? "bytes" : "times", ratio_title(run)),
                    .bars = {}};
  for (const StudyRow& row : run.result.rows) {
    std::string note =
        row.ratio ? fmt::format(" {} ({})", unit, number(row.ratio)) : fmt::format(" {}", unit);
    if (row.entry.claim) note += fmt::format("; paper {}", number(row.entry.claim));
    NamedBar bar{row.entry.name, row.times.median(), row.times.least(), row.times.most(), note};
    if (memory) bar.value = bar.low = bar.high = row.entry.figures.back().second / (1 << 20);
    plot.bars.push_back(std::move(bar));
  }
  return bars_file(plot);
}

void print_studies() {
  for (const Study& study : studies())
    fmt::print("{:<23} {:<8} {}\n{:<32} {}: {}\n", study.name, study.needs_gpus ? "GPUs" : "any",
               study.question, "", study.paper, study.claim);
  for (const StudyScript& script : study_scripts())
    fmt::print("{:<23} {:<8} {}\n{:<32} {}: {}\n{:<32} {}\n", script.name, "script",
               script.question, "", script.paper, script.claim, "", script.command);
}

json studies_to_json() {
  json all = json::array();
  for (const Study& study : studies())
    all.push_back({{"name", study.name},
                   {"question", study.question},
                   {"paper", study.paper},
                   {"claim", study.claim},
                   {"needs_gpus", study.needs_gpus},
                   {"least_ranks", study.least_ranks}});
  json scripts = json::array();
  for (const StudyScript& script : study_scripts())
    scripts.push_back({{"name", script.name},
                       {"question", script.question},
                       {"paper", script.paper},
                       {"claim", script.claim},
                       {"command", script.command}});
  return {{"studies", all}, {"scripts", scripts}};
}

}  // namespace plait::cli
