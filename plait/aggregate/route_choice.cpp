#include "plait/aggregate/route_choice.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
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
    : dataset_(dataset),
      run_(std::move(run)),
      listener_(std::move(listener)),
      tries_(run_.tries && run_.question.open_strategy) {}

Route RouteChoice::by_measurement() {
  const RouteQuestion& question = run_.question;
  tries_ = tries_ && run_.ranks > 1;
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
  const bool measured = !decision.alternatives.empty();
  const std::optional<MeasuredEpoch> tried = tried_best(question, found.epochs);
  tries_ = tries_ && !measured && !tried;
  predicts_ = !measured && !tried && question.open_strategy && question.route.gpu;
  if (!measured && tried) return by_trials(*tried, found.epochs);
  if (!open)
    listener_.reason(way_name(decision.route) + ": as asked for");
  else if (measured)
    explain(decision, "by the times that plait tune measured");
  else if (!predicts_)
    listener_.reason(way_name(decision.route) +
                     (question.route.wire == DType::f32
                          ? ": nothing was measured for this graph; see plait tune"
                          : ": plait tune measures no rows that cross as less than fp32"));
  return decision.route;
}

Strategy RouteChoice::that_fits(const Route& known, const Partition& partition,
                                const std::vector<std::uint64_t>& free) {
  const Strategy standard = run_.question.route.strategy;
  if (known.strategy == standard || free.empty()) return known.strategy;
  const MemoryPlan plan = run_.plan(partition, known);
  std::uint64_t of_host = 0;
  for (int rank = 0; rank < run_.here; ++rank) of_host += plan.rank_total(rank);
  if (known.gpu ? fits_on_gpus(plan, free) : of_host <= free.front()) return known.strategy;
  listener_.reason(
      fmt::format("{} does not fit in memory: strategy {}", way_name(known), to_string(standard)));
  passes_ = 0;
  return standard;
}

std::vector<TrialWay> RouteChoice::trials(const Route& decided, const Partition& partition,
                                          const std::vector<Strategy>& possible) const {
  if (!tries_) return {};
  RouteQuestion question = run_.question;
  question.route = decided;
  if (!decided.gpu) return trial_ways(question, possible, nullptr);
  const PartitionQuality quality = measure_partition(dataset_.graph, partition);
  return trial_ways(question, possible, &quality);
}

Route RouteChoice::by_prediction(const Partition& partition, const std::vector<std::uint64_t>& free,
                                 std::uint64_t seed) {
  const Timed timed("predict");
  const PartitionScheme own = run_.question.route.partition;
  std::map<PartitionScheme, Partition> others;
  std::map<PartitionScheme, PartitionQuality> counts;
  counts.emplace(own, measure_partition(dataset_.graph, partition));
  for (const PartitionScheme scheme : other_partitions(counts.at(own))) {
    const Partition& other =
        others.emplace(scheme, make_partition(scheme, dataset_, partition.parts(), seed))
            .first->second;
    counts.emplace(scheme, measure_partition(dataset_.graph, other));
  }
  bool too_large = false;
  const auto fits = [&](const Route& route) {
    const Partition& cut = route.partition == own ? partition : others.at(route.partition);
    const bool fit = free.empty() || fits_on_gpus(run_.plan(cut, route), free);
    if (!fit) listener_.reason(way_name(route) + ": does not fit in the memory of the GPUs");
    too_large = too_large || !fit;
    return fit;
  };
  std::vector<CountedPartition> counted;
  for (const auto& [scheme, quality] : counts) counted.push_back({scheme, &quality});
  const Decision decision = predict_best(run_.question, counted, fits);
  explain(decision, too_large ? "takes less memory; predicted times"
                              : "by predicted times, as plait tune has measured no way that "
                                "this run can go");
  return decision.route;
}

// Returns the partitions that predictions compare with the standard one, whose counts are given:
// clusters, which take long to find, only if a quarter of all sums' time repays the search.
std::vector<PartitionScheme> RouteChoice::other_partitions(const PartitionQuality& standard) const {
  // Clusters are found once to be counted, and again if they are taken.
  constexpr double kMostGain = 0.25, kSearches = 2, kEdgesPerSecond = 3e7;  // on 16 cores
  std::vector<PartitionScheme> others;
  if (!run_.question.open_partition) return others;
  const auto always = [](const Route&) { return true; };
  const double sum = predict_best(run_.question, standard, always).alternatives.front().ms / 1e3;
  const bool repaid = kMostGain * run_.times * sum >
                      kSearches * static_cast<double>(edge_count(dataset_.graph)) / kEdgesPerSecond;
  for (const PartitionScheme scheme :
       {PartitionScheme::edges, PartitionScheme::vertices, PartitionScheme::clusters})
    if (scheme != run_.question.route.partition && (scheme != PartitionScheme::clusters || repaid))
      others.push_back(scheme);
  return others;
}

// Returns the route with the way that stayed in an earlier run.
Route RouteChoice::by_trials(const MeasuredEpoch& best, const std::vector<MeasuredEpoch>& epochs) {
  Route route = run_.question.route;
  route.strategy = best.way.strategy, route.partition = best.kind.partition;
  passes_ = best.way.passes;
  listener_.reason(fmt::format("{}, partition {}: by epochs that an earlier run tried, per step:",
                               plait::name_of(best.way), to_string(route.partition)));
  for (const MeasuredEpoch& one : epochs)
    if (one.kind == best.kind)
      listener_.reason(fmt::format("  {:<40}{:>12.3f} ms", plait::name_of(one.way), one.ms));
  return route;
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
