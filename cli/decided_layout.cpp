// Chooses the parts of a route that the user left open, by the times that plait tune measured or by
// predicted ones (aggregate/route_choice.h).
#include <fmt/core.h>

#include <span>

#include "cli/ranks.h"
#include "plait/aggregate/route_choice.h"
#include "plait/aggregate/shared_partition.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/profile.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/model.h"
#include "plait/symmetric/agreement.h"

namespace plait::cli {
namespace {

void say(const std::string& text) { fmt::print(stderr, "plait: {}\n", text); }

// The ranks of a run, `here` of them on this host; and whether this one tells what was chosen.
struct RunRanks {
  int all, here;
  bool tells = true;
};

// Returns the choice for a run on these ranks. It says on stderr what the session wants to know.
RouteChoice choice_for(const Dataset& dataset, const Session& session, const Route& route,
                       const Moved& moved, const RunRanks& ranks) {
  const auto reason = [&session, tells = ranks.tells](const std::string& text) {
    if (tells && session.explain) say(text);
  };
  const auto warning = [&session, tells = ranks.tells](const std::string& text) {
    if (!tells || (session.quiet && !session.explain)) return;
    say((session.explain ? "" : "warning: ") + text);
  };
  return {dataset,
          {.question = {.route = route,
                        .open_strategy = session.open_strategy,
                        .open_partition = session.open_partition,
                        .widths = moved.widths,
                        .rows = moved.rows,
                        .model = moved.model},
           .ranks = ranks.all,
           .here = ranks.here,
           .plan = moved.plan,
           .times = moved.times,
           .tries = moved.tries},
          {.reason = reason, .warning = warning}};
}

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
  RouteChoice choice = choice_for(dataset, session, route, moved, {ranks, ranks});
  Route decided = choice.by_measurement();
  Partition partition =
      timed("partition", [&] { return make_partition(decided.partition, dataset, ranks, seed); });
  const std::vector<std::uint64_t> free =
      route.gpu ? free_on_gpus(ranks) : std::vector{available_memory()};
  if (choice.predicts()) {
    const Route best = choice.by_prediction(partition, free, seed);
    if (best.partition != decided.partition)
      partition = make_partition(best.partition, dataset, ranks, seed);
    decided = best;
  } else {
    decided.strategy = choice.that_fits(decided, partition, free);
  }
  return {decided, std::move(partition), choice.passes()};
}

Layout decided_layout(World& world, const Dataset& dataset, const Session& session,
                      const Route& route, const Moved& moved, std::uint64_t seed) {
  const auto here = static_cast<int>(world.ranks_of_host().size());
  const bool tells = world.number_of(world.rank()) == 0;  // other hosts choose, too
  RouteChoice choice = choice_for(dataset, session, route, moved, {world.size(), here, tells});
  Sent found;
  const auto first_decides = [&](const auto& decision) {
    on_all_or_none(world, [&] {
      if (world.rank() == 0) decision();
    });
    world.broadcast(std::as_writable_bytes(std::span(&found, 1)), 0);
  };
  first_decides([&] {
    const Route by = choice.by_measurement();
    found = {by.strategy, by.partition, choice.predicts(), choice.tries(), choice.passes()};
  });
  Route decided = route;
  decided.partition = found.partition;
  Partition partition = shared_partition(world, dataset, decided.partition, seed);
  std::vector<std::uint64_t> free;
  if (route.gpu && (found.predicts || found.strategy != route.strategy))
    free = gather_found(world, [] { return gpu_free_memory(); });
  if (!found.predicts && found.strategy != route.strategy) {
    decided.strategy = found.strategy;
    first_decides([&] {
      if (!route.gpu) free = {available_memory()};
      found.strategy = choice.that_fits(decided, partition, free);
      found.passes = choice.passes();
    });
  }
  if (found.predicts) {
    first_decides([&] {
      const Route best = choice.by_prediction(partition, free, seed);
      found.strategy = best.strategy, found.partition = best.partition;
    });
    if (found.partition != decided.partition)
      partition = shared_partition(world, dataset, found.partition, seed);
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
          "plait tune measured on this graph, else edges on CPUs and, with --strategy auto, the "
          "fastest by prediction on GPUs");
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
          .times = static_cast<double>(moves_per_step(config.model)) * config.epochs};
}

}  // namespace plait::cli
