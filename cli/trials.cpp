#include "cli/trials.h"

#include <fmt/core.h>

#include <algorithm>

#include "plait/base/error.h"

namespace plait::cli {
namespace {

json milliseconds(double seconds) { return 1e3 * seconds; }

Optimise parse_optimise(std::string_view word) {
  if (word == "auto") return Optimise::automatic;
  if (word == "on") return Optimise::on;
  require<UsageError>(word == "off", "'{}' is unknown; use one of auto, on, off", word);
  return Optimise::off;
}

bool counts(const Trial& trial) { return !trial.seconds.empty(); }

}  // namespace

void add_optimise_option(CLI::App* command, Optimise& optimise) {
  show_words(
      add_choice(
          command, "--optimise", optimise, parse_optimise, "auto",
          "Trials of other strategies by the first epochs, after which the fastest stays and "
          "is kept for later runs. They are made with --strategy auto on a graph of which "
          "nothing was measured, if the epochs that are left can repay them; with auto on "
          "CPUs alone. With off, trials of earlier runs choose nothing either"),
      "auto, on, off");
}

bool may_try(Optimise optimise, bool gpu) {
  return optimise == Optimise::on || (optimise == Optimise::automatic && !gpu);
}

json trials_to_json(const TrainResult& result) {
  json trials = json::array();
  for (const Trial& t : result.trials)
    trials.push_back({{"strategy", to_string(t.way.strategy)},
                      {"passes", t.way.passes},
                      {"epochs", t.epochs},
                      {"epoch_ms", counts(t) ? milliseconds(t.least()) : json(nullptr)},
                      {"setup_ms", t.set_up ? milliseconds(*t.set_up) : json(nullptr)},
                      {"left_out", t.left_out.empty() ? json(nullptr) : json(t.left_out)}});
  return {{"passes", result.way.passes}, {"trials", trials}};
}

void say_untried(Optimise optimise, const std::string& reason, const Session& session) {
  if (optimise == Optimise::on && !reason.empty() && !session.quiet)
    fmt::print(stderr, "plait: --optimise on tries no other way: {}\n", reason);
}

std::string why_untried(const TrainResult& result) {
  if (std::ranges::count_if(result.trials, counts) > 1) return "";
  const auto left_out = [](const Trial& trial) { return !trial.left_out.empty(); };
  const auto first = std::ranges::find_if(result.trials, left_out);
  return first == result.trials.end() ? "" : first->left_out;
}

void explain_trials(const TrainResult& result, const Session& session) {
  if (!session.explain || !result.trials_ended) return;
  fmt::print(stderr, "plait: {}: {}, per step:\n", name_of(result.way),
             why_untried(result).empty() ? "stayed after trials" : "no other way was tried");
  for (const Trial& t : result.trials) {
    if (counts(t))
      fmt::print(stderr, "plait:   {:<40}{:>12.3f} ms, set up in {:.1f} ms\n", name_of(t.way),
                 1e3 * t.least(), 1e3 * t.set_up.value_or(0));
    else
      fmt::print(stderr, "plait:   {:<40} not tried: {}\n", name_of(t.way), t.left_out);
  }
}

void keep_trials(const TrainResult& result, const GraphRun& run, int here, const Session& session) {
  const Route& route = run.question.route;
  std::vector<MeasuredRoute> tried;
  for (const Trial& t : result.trials)
    if (counts(t))
      tried.push_back({kind_of(run.question), route.partition, t.way, 1e3 * t.least()});
  if (!result.trials_ended || tried.size() < 2) return;
  std::ranges::stable_partition(tried,
                                [&](const MeasuredRoute& one) { return one.way == result.way; });
  try {
    const std::string folder = measured_routes_folder();
    if (folder.empty()) return;  // the key, which looks at all edges, need not be computed
    const auto key = measured_key(run.dataset(), route.gpu, run.question.ranks, here);
    keep_measured_routes(folder, key, tried);
  } catch (const Error& error) {
    if (!session.quiet)
      fmt::print(stderr, "plait: warning: the trials are not kept: {}\n", error.what());
  }
}

}  // namespace plait::cli
