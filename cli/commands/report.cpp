// plait report RUN.json...: writes one page about the results and costs of training runs.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "cli/cli.h"
#include "cli/commands/report_style.h"
#include "cli/run_json.h"
#include "cli/svg/plot.h"
#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/memory.h"
#include "plait/base/printable.h"

namespace plait::cli {
namespace {

using Runs = std::vector<Run>;

constexpr std::size_t kMostRanks = 128;  // that a figure shows

// --- the table ---

std::string percent(double share) { return fmt::format("{:.2f}%", 100 * share); }

std::string duration(double seconds) {
  const Unit unit = time_unit(seconds);
  return fmt::format("{} {}", significant(seconds / unit.size), unit.name);
}

struct TableRow {
  const char* name;
  std::string (*value)(const Run& run);
};
constexpr TableRow kTable[] = {
    {"Graph", [](const Run& r) { return r.graph; }},
    {"Model", [](const Run& r) { return r.model; }},
    {"Ranks", [](const Run& r) { return fmt::format("{} ({})", r.ranks, r.device); }},
    {"Strategy, partition", [](const Run& r) { return r.strategy + ", " + r.partition; }},
    {"Seed", [](const Run& r) { return std::to_string(r.seed); }},
    {"Epochs",
     [](const Run& r) {
       return fmt::format("{}{}", r.loss.size(), r.interrupted ? ", interrupted" : "");
     }},
    {"Last training loss", [](const Run& r) { return significant(r.loss.back(), 4); }},
    {"Best epoch", [](const Run& r) { return std::to_string(r.best_epoch); }},
    {"Metric of the best epoch", [](const Run& r) { return r.metric; }},
    {"Training", [](const Run& r) { return percent(r.train_metric); }},
    {"Validation", [](const Run& r) { return percent(r.val_metric); }},
    {"Test", [](const Run& r) { return percent(r.test_metric); }},
    {"Training step", [](const Run& r) { return duration(r.epoch_ms / 1e3); }},
    {"Communication", [](const Run& r) { return percent(r.comm_share); }},
    {"Received per step",
     [](const Run& r) { return format_bytes(static_cast<std::uint64_t>(r.bytes_per_rank)); }},
};

std::string table(const Runs& runs) {
  std::string out = "<div class=\"table\"><table>\n<thead><tr><th></th>";
  for (const Run& run : runs) out += fmt::format("<th>{}</th>", escape_html(run.name));
  out += "</tr></thead>\n<tbody>\n";
  for (const TableRow& row : kTable) {
    out += fmt::format("<tr><th>{}</th>", row.name);
    for (const Run& run : runs) out += fmt::format("<td>{}</td>", escape_html(row.value(run)));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

// --- figures ---

// One curve per run, named after the run if there are several.
std::string curve_name(const Runs& runs, std::size_t run, const char* what) {
  return runs.size() == 1 ? what : runs[run].name + ", " + what;
}

std::string loss_figure(const Runs& runs) {
  CurvePlot plot{"Loss", "epoch", "loss", {}};
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const int colour = static_cast<int>(r);
    plot.curves.push_back({curve_name(runs, r, "training"), runs[r].loss, colour});
    if (!runs[r].val_loss.empty())
      plot.curves.push_back({curve_name(runs, r, "validation"), runs[r].val_loss, colour, true});
  }
  return draw_curves(plot);
}

std::string metric_figure(const Runs& runs) {
  const bool same =
      std::ranges::all_of(runs, [&](const Run& run) { return run.metric == runs.front().metric; });
  const std::string metric = same ? runs.front().metric : "metric";
  CurvePlot plot{"Validation (dot: the epoch whose weights are kept)", "epoch", metric, {}};
  for (std::size_t r = 0; r < runs.size(); ++r)
    plot.curves.push_back({runs[r].name, runs[r].val_metric_by_epoch, static_cast<int>(r), false,
                           runs[r].best_epoch});
  return draw_curves(plot);
}

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : std::ranges::max(values);
}

// The number of ranks that a figure shows.
std::vector<double> shown(const std::vector<double>& by_rank) {
  return {by_rank.begin(),
          by_rank.begin() + static_cast<std::ptrdiff_t>(std::min(by_rank.size(), kMostRanks))};
}

// A caption: the run, if there are several, and the number of its ranks that are shown.
std::string caption(const Runs& runs, const Run& run, const std::string& what) {
  std::string text = runs.size() == 1 ? what : run.name + ": " + what;
  if (run.ranks > kMostRanks)
    text += fmt::format(" (the first {} of {} ranks)", kMostRanks, run.ranks);
  return text;
}

std::string phase_figure(const Runs& runs, const Run& run) {
  if (run.phases.empty()) return "";
  std::vector<double> totals(run.ranks);
  for (const auto& [name, seconds] : run.phases)
    for (std::size_t rank = 0; rank < run.ranks; ++rank) totals[rank] += seconds[rank];
  const Unit unit = time_unit(largest(totals));
  BarPlot plot{
      caption(runs, run, "Time by phase"), fmt::format("time ({})", unit.name), "rank", {}, unit};
  int colour = 0;
  for (const auto& [name, seconds] : run.phases) {
    if (largest(seconds) > 0) plot.parts.push_back({name, shown(seconds), colour % kColours});
    ++colour;
  }
  return plot.parts.empty() ? "" : draw_bars(plot);
}

std::string bytes_figure(const Runs& runs, const Run& run) {
  if (run.bytes_between.empty() || run.ranks == 1) return "";
  MatrixPlot plot{caption(runs, run, "Bytes of rows per training step"),
                  "read by rank",
                  "from rank",
                  {},
                  {1, "B"}};
  double most = 0;
  for (const auto& row : run.bytes_between) {
    if (plot.rows.size() < kMostRanks) plot.rows.push_back(shown(row));
    most = std::max(most, largest(row));
  }
  plot.unit = byte_unit(most);
  plot.title += fmt::format(", in {}", plot.unit.name);
  return draw_matrix(plot);
}

std::string memory_figure(const Runs& runs, const Run& run, const std::string& what,
                          const std::vector<double>& bytes) {
  if (bytes.empty()) return "";
  const Unit unit = byte_unit(largest(bytes));
  return draw_bars({caption(runs, run, what),
                    fmt::format("memory ({})", unit.name),
                    "rank",
                    {{"memory", shown(bytes)}},
                    unit});
}

std::string section(const std::string& title, const std::string& text, const std::string& figures) {
  if (figures.empty()) return "";
  return fmt::format("<h2>{}</h2>\n<p>{}</p>\n<div class=\"figures\">\n{}</div>\n", title, text,
                     figures);
}

std::string page(const Runs& runs) {
  std::string phases, bytes, memory;
  for (const Run& run : runs) {
    phases += phase_figure(runs, run);
    bytes += bytes_figure(runs, run);
    memory += memory_figure(runs, run, "Host memory", run.host_memory);
    memory += memory_figure(runs, run, "GPU memory", run.gpu_memory);
  }
  const std::string title =
      runs.size() == 1 ? "Training of " + runs.front().name : fmt::format("{} runs", runs.size());
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n"
      "<body>\n<main>\n<h1>{0}</h1>\n<p>Made by plait report {2}.</p>\n",
      escape_html(title), kReportStyle, PLAIT_VERSION);
  out += table(runs);
  out += section("Learning", "Each epoch is one step on the whole graph.",
                 loss_figure(runs) + metric_figure(runs));
  out += section("Time",
                 "The figures cover the whole run. Setup is reading, partitioning and placing the "
                 "graph. In training steps, summing adds rows of neighbours, fetching brings rows "
                 "of other ranks, waiting is for other ranks, gradients are summed over ranks, and "
                 "computing is the rest. On GPUs, computing includes summing and fetching.",
                 phases);
  out += section("Between ranks",
                 "Bytes of rows that each rank reads from each other rank in a training step, "
                 "without the sum of gradients.",
                 bytes);
  out += section("Memory",
                 "Peak memory of each rank's process, including libraries and mapped files, and "
                 "GPU memory in use when training ended.",
                 memory);
  return out + "</main>\n</body>\n</html>\n";
}

struct Options {
  std::vector<std::string> runs;
  std::string out;
};

Runs read_runs(const std::vector<std::string>& paths) {
  require<UsageError>(paths.size() <= kColours, "{} runs were given; a report shows at most {}",
                      paths.size(), kColours);
  Runs runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  std::set<std::string> names;
  for (const Run& run : runs) names.insert(run.name);
  if (names.size() < runs.size())
    for (std::size_t r = 0; r < runs.size(); ++r) runs[r].name = printable(paths[r]);
  return runs;
}

void run(const Options& o, const Session& session) {
  const Runs runs = read_runs(o.runs);
  AtomicFile file(o.out);
  file.write(page(runs));
  file.commit();
  if (session.json)
    print_json({{"out", o.out}, {"runs", runs.size()}});
  else
    fmt::print("{}: {}\n", printable(o.out), counted(runs.size(), "run"));
}

}  // namespace

void add_report(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, session, "report", "Show the results and costs of training runs on one page",
                  [=, &session] { run(*o, session); });
  command->add_option("runs", o->runs, "Output of plait train --json; several files are compared")
      ->required();
  as_output(session, command->add_option("-o,--out", o->out, "HTML page to write"))->required();
  add_examples(command,
               "  plait train cora.plait --ranks 2 --json > gcn.json\n"
               "  plait report gcn.json -o report.html\n"
               "  plait report gcn.json gat.json sage.json -o comparison.html");
}

}  // namespace plait::cli
