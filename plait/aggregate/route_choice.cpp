#include "plait/aggregate/route_choice.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "plait/base/gpu.h"
#include "plait/base/profile.h"
#include "plait/io/fingerprint.h"
#include "plait/partition/quality.h"

namespace plait {
namespace {

std::string way_name(Strategy strategy, PartitionScheme partition) {
  return fmt::format("strategy {}, partition {}", to_string(strategy), to_string(partition));
}
std::string way_name(const Route& route) { return way_name(route.strategy, route.partition); }

// Tells whether the times of plait tune, if it kept some, can choose anything.
bool may_be_measured(const ChoiceCase& run) {
  const RouteQuestion& question = run.question;
  std::error_code none;
  return run.ranks > 1 && (question.open_strategy || question.open_partition) &&
         std::filesystem::exists(measured_routes_folder(), none);
}

}  // namespace

bool looks_at_graph(const ChoiceCase& run) {
  const bool may_be_predicted =
      run.ranks > 1 && run.question.open_strategy && run.question.route.gpu;
  return may_be_predicted || may_be_measured(run);
}

RouteChoice::RouteChoice(const Dataset& dataset, ChoiceCase run, ChoiceListener listener)
    : dataset_(dataset), run_(std::move(run)), listener_(std::move(listener)) {}

Route RouteChoice::by_measurement() {
  const RouteQuestion& question = run_.question;
  if (run_.ranks == 1) {
    listener_.reason("one rank: nothing moves between ranks");
    return question.route;
  }
  const bool open = question.open_strategy || question.open_partition;
  MeasuredRoutes found;
  if (may_be_measured(run_))  // else the key need not be computed
    found = read_measured_routes(measured_routes_folder(),
                                 measured_key(dataset_, question.route.gpu, run_.ranks, run_.here));
  if (!found.note.empty()) listener_.warning(found.note);
  const Decision decision = decide(question, found.routes);
  predicts_ = decision.alternatives.empty() && question.open_strategy && question.route.gpu;
  if (!open)
    listener_.reason(way_name(decision.route) + ": as asked for");
  else if (!decision.alternatives.empty())
    explain(decision, "by the times that plait tune measured");
  else if (!predicts_)
    listener_.reason(way_name(decision.route) +
                     ": nothing was measured for this graph; see plait tune");
  return decision.route;
}

Route RouteChoice::by_prediction(const Partition& partition,
                                 const std::vector<std::uint64_t>& free) {
  const Timed timed("predict");
  bool too_large = false;
  const auto fits = [&](const Route& route) {
    too_large = !free.empty() && !fits_on_gpus(run_.plan(partition, route), free);
    if (too_large) listener_.reason(way_name(route) + ": does not fit in the memory of the GPUs");
    return !too_large;
  };
  const Decision decision =
      predict_best(run_.question, measure_partition(dataset_.graph, partition), fits);
  explain(decision, too_large ? "takes less memory; predicted times"
                              : "by predicted times, as plait tune has measured no way that this "
                                "run can go");
  return decision.route;
}

void RouteChoice::explain(const Decision& decision, const std::string& why) {
  alternatives_ = decision.alternatives;
  listener_.reason(
      fmt::format("{}: {}, for the widths of this run:", way_name(decision.route), why));
  for (const Alternative& a : decision.alternatives)
    listener_.reason(fmt::format("  {:<40}{:>12.3f} ms", way_name(a.strategy, a.partition), a.ms));
}

MeasuredKey measured_key(const Dataset& dataset, bool gpu, int ranks, int here) {
  return {.graph = graph_checksum(dataset),
          .device = !gpu ? fmt::format("cpu, {} processors", std::thread::hardware_concurrency())
                    : gpu_count() > 0 ? current_gpu_name()
                                      : "GPU",
          .ranks = ranks,
          .here = here};
}

std::vector<std::uint64_t> free_on_gpus(int ranks) {
  std::vector<std::uint64_t> free;
  if (gpu_count() < ranks) return free;
  for (const Gpu& gpu : list_gpus()) free.push_back(gpu.free);
  free.resize(static_cast<std::size_t>(ranks));
  return free;
}

}  // namespace plait
