// Chooses the parts of a route that the user left open, by the times that plait tune measured or by
// predicted ones (plan/decide.h).
#include <fmt/core.h>

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <thread>

#include "cli/ranks.h"
#include "plait/base/gpu.h"
#include "plait/base/profile.h"
#include "plait/io/fingerprint.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/model.h"
#include "plait/plan/decide.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"

namespace plait::cli {
namespace {

std::string name_of(Strategy strategy, PartitionScheme partition) {
  return fmt::format("strategy {}, partition {}", to_string(strategy), to_string(partition));
}

void say(const std::string& text) { fmt::print(stderr, "plait: {}\n", text); }

// A decision in progress, on one rank.
class Choice {
 public:
  Choice(const Dataset& dataset, const Session& session, const Route& route, const Moved& moved)
      : dataset_(dataset),
        session_(session),
        plan_(moved.plan),
        question_{.route = route,
                  .open_strategy = session.open_strategy,
                  .open_partition = session.open_partition,
                  .widths = moved.widths,
                  .rows = moved.rows,
                  .model = moved.model},
        times_(moved.times),
        tries_(moved.tries && session.open_strategy) {}

  // Returns the route that plait tune's times choose. If that leaves the strategy to predictions,
  // by_prediction() is to follow.
  Route by_measurement(int ranks, int here) {
    tries_ = tries_ && ranks > 1;
    if (ranks == 1) {
      explain("one rank: nothing moves between ranks");
      return question_.route;
    }
    const bool open = question_.open_strategy || question_.open_partition;
    const std::string folder = measured_routes_folder();
    std::error_code none;
    MeasuredRoutes found;
    if (open && std::filesystem::exists(folder, none))  // else the key need not be computed
      found = read_measured_routes(folder, measured_key(dataset_, session_, ranks, here));
    if (!found.note.empty() && (session_.explain || !session_.quiet))
      say((session_.explain ? "" : "warning: ") + found.note);
    const Decision decision = decide(question_, found.routes);
    const bool measured = !decision.alternatives.empty();
    const std::optional<TrialWay> tried = tried_best(question_, found.epochs);
    tries_ = tries_ && !measured && !tried;
    predicts_ = !measured && !tried && question_.open_strategy && question_.route.gpu;
    if (!measured && tried) return by_trials(*tried, found.epochs);
    if (!open)
      explain(name_of(decision.route) + ": as asked for");
    else if (measured)
      explain(decision, "by the times that plait tune measured");
    else if (!predicts_)
      explain(name_of(decision.route) + ": nothing was measured for this graph; see plait tune");
    return decision.route;
  }
  bool predicts() const { return predicts_; }
  bool tries() const { return tries_; }
  int passes() const { return passes_; }

  // Returns the ways that training may try, if it tries, beginning with a route that was decided.
  std::vector<TrialWay> trials(const Route& decided, const Partition& partition,
                               const std::vector<Strategy>& possible) const {
    if (!tries_) return {};
    RouteQuestion question = question_;
    question.route = decided;
    if (!decided.gpu) return trial_ways(question, possible, nullptr);
    const PartitionQuality quality = measure_partition(dataset_.graph, partition);
    return trial_ways(question, possible, &quality);
  }

  // Returns the route that predicted times choose; `partition` is of the standard one. `free`:
  // bytes of each rank's GPU; nothing if they are not known.
  Route by_prediction(const Partition& partition, const std::vector<std::uint64_t>& free,
                      std::uint64_t seed) {
    const Timed timed("predict");
    const PartitionScheme own = question_.route.partition;
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
      const bool fit = free.empty() || fits_on_gpus(plan_(cut, route), free);
      if (!fit) explain(name_of(route) + ": does not fit in the memory of the GPUs");
      too_large = too_large || !fit;
      return fit;
    };
    std::vector<CountedPartition> counted;
    for (const auto& [scheme, quality] : counts) counted.push_back({scheme, &quality});
    const Decision decision = predict_best(question_, counted, fits);
    explain(decision, too_large ? "takes less memory; predicted times"
                                : "by predicted times, as plait tune has measured no way that "
                                  "this run can go");
    return decision.route;
  }

 private:
  // Returns the partitions that predictions compare with the standard one, whose counts are given:
  // clusters, which take long to find, only if a quarter of all sums' time repays the search.
  std::vector<PartitionScheme> other_partitions(const PartitionQuality& standard) const {
    constexpr double kMostGain = 0.25, kEdgesPerSecond = 3e7;  // of the search, on 16 cores
    std::vector<PartitionScheme> others;
    if (!question_.open_partition) return others;
    const auto always = [](const Route&) { return true; };
    const double sum = predict_best(question_, standard, always).alternatives.front().ms / 1e3;
    const bool repaid = kMostGain * times_ * sum >
                        static_cast<double>(edge_count(dataset_.graph)) / kEdgesPerSecond;
    for (const PartitionScheme scheme :
         {PartitionScheme::edges, PartitionScheme::vertices, PartitionScheme::clusters})
      if (scheme != question_.route.partition && (scheme != PartitionScheme::clusters || repaid))
        others.push_back(scheme);
    return others;
  }

  // Returns the route with the way that stayed in an earlier run.
  Route by_trials(const TrialWay& way, const std::vector<MeasuredEpoch>& epochs) {
    Route route = question_.route;
    route.strategy = way.strategy;
    passes_ = way.passes;
    explain(fmt::format("{}, partition {}: by epochs that an earlier run tried, per step:",
                        plait::name_of(way), to_string(route.partition)));
    for (const MeasuredEpoch& one : epochs)
      if (one.kind == training_kind(question_))
        explain(fmt::format("  {:<40}{:>12.3f} ms", plait::name_of(one.way), one.ms));
    return route;
  }

  static std::string name_of(const Route& route) {
    return cli::name_of(route.strategy, route.partition);
  }
  void explain(const std::string& text) const {
    if (session_.explain) say(text);
  }
  void explain(const Decision& decision, const std::string& why) const {
    explain(fmt::format("{}: {}, for the widths of this run:", name_of(decision.route), why));
    for (const Alternative& a : decision.alternatives)
      explain(fmt::format("  {:<40}{:>12.3f} ms", cli::name_of(a.strategy, a.partition), a.ms));
  }

  const Dataset& dataset_;
  const Session& session_;
  const std::function<MemoryPlan(const Partition&, const Route&)> plan_;
  RouteQuestion question_;
  const double times_;  // that the question's sums are made
  bool tries_;          // once by_measurement() was called: ways are to be tried
  bool predicts_ = false;
  int passes_ = 0;
};

// A decision as rank 0 sends it.
struct Sent {
  Strategy strategy = Strategy::automatic;
  PartitionScheme partition = PartitionScheme::edges;
  bool predicts = false;  // the strategy is to be predicted
  bool tries = false;     // ways are to be tried
  int passes = 0;
};

// Collective. Returns on all ranks the ways of rank 0.
std::vector<TrialWay> as_first_rank(World& world, std::vector<TrialWay> ways) {
  std::uint64_t count = ways.size();
  world.broadcast(std::as_writable_bytes(std::span(&count, 1)), 0);
  ways.resize(count);
  world.broadcast(std::as_writable_bytes(std::span(ways)), 0);
  return ways;
}

}  // namespace

Layout decided_layout(const Dataset& dataset, const Session& session, int ranks, const Route& route,
                      const Moved& moved, std::uint64_t seed) {
  Choice choice(dataset, session, route, moved);
  Route decided = choice.by_measurement(ranks, ranks);
  Partition partition =
      timed("partition", [&] { return make_partition(decided.partition, dataset, ranks, seed); });
  if (choice.predicts()) {
    const Route best = choice.by_prediction(partition, free_on_gpus(ranks), seed);
    if (best.partition != decided.partition)
      partition = make_partition(best.partition, dataset, ranks, seed);
    decided = best;
  }
  return {decided, std::move(partition), choice.passes()};
}

Layout decided_layout(World& world, const Dataset& dataset, const Session& session,
                      const Route& route, const Moved& moved, std::uint64_t seed) {
  Choice choice(dataset, session, route, moved);
  Sent found;
  const auto first_decides = [&](const auto& decision) {
    on_all_or_none(world, [&] {
      if (world.rank() == 0) decision();
    });
    world.broadcast(std::as_writable_bytes(std::span(&found, 1)), 0);
  };
  first_decides([&] {
    const auto here = static_cast<int>(world.ranks_of_host().size());
    const Route by = choice.by_measurement(world.size(), here);
    found = {by.strategy, by.partition, choice.predicts(), choice.tries(), choice.passes()};
  });
  Route decided = route;
  decided.partition = found.partition;
  Partition partition = partition_for(world, dataset, decided.partition, seed);
  if (found.predicts) {
    const std::vector<std::uint64_t> free = gather_values(world, gpu_free_memory());
    first_decides([&] {
      const Route best = choice.by_prediction(partition, free, seed);
      found.strategy = best.strategy, found.partition = best.partition;
    });
    if (found.partition != decided.partition)
      partition = partition_for(world, dataset, found.partition, seed);
    decided.partition = found.partition;
  }
  decided.strategy = found.strategy;
  std::vector<TrialWay> trials;
  if (found.tries) {
    const std::vector<Strategy> possible = worthwhile_strategies(world, decided);
    on_all_or_none(world, [&] {
      if (world.rank() == 0) trials = choice.trials(decided, partition, possible);
    });
    trials = as_first_rank(world, std::move(trials));
  }
  return {decided, std::move(partition), found.passes, std::move(trials)};
}

void add_explain_option(CLI::App* command, Session& session) {
  command->add_flag("--explain", session.explain,
                    "Say on stderr which strategy and partition were chosen, and why");
  command->get_option("--strategy")
      ->description(
          "Strategy that moves remote rows to where they are summed; auto: the fastest "
          "that plait tune measured on this graph, else bulk on CPUs and the fastest "
          "by prediction on GPUs");
  command->get_option("--partition")
      ->description(
          "Scheme that assigns vertices to ranks; without this option, the fastest that "
          "plait tune measured on this graph, else edges on CPUs and the fastest by prediction on "
          "GPUs");
}

std::vector<std::uint64_t> free_on_gpus(int ranks) {
  std::vector<std::uint64_t> free;
  if (gpu_count() < ranks) return free;
  for (const Gpu& gpu : list_gpus()) free.push_back(gpu.free);
  free.resize(static_cast<std::size_t>(ranks));
  return free;
}

Moved moved_by(const TrainConfig& config, const Dataset& dataset) {
  return {.widths = moved_widths_of(config.model, dataset.features.is_sparse()),
          .rows = moves_rows(config.model),
          .plan =
              [config, &dataset](const Partition& partition, const Route& route) {
                TrainConfig by_route = config;
                by_route.route = route;
                return plan_training(dataset, partition, by_route);
              },
          .model = config.model.kind,
          .times = 2.0 * config.epochs};  // forward and backward
}

MeasuredKey measured_key(const Dataset& dataset, const Session& session, int ranks, int here) {
  return {.graph = graph_checksum(dataset),
          .device = session.gpus == 0
                        ? fmt::format("cpu, {} processors", std::thread::hardware_concurrency())
                    : gpu_count() > 0 ? current_gpu_name()
                                      : "GPU",
          .ranks = ranks,
          .here = here};
}

}  // namespace plait::cli
