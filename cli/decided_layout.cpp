// Chooses the parts of a route that the user left open, and says why.
#include <fmt/core.h>

#include "cli/ranks.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/model.h"

namespace plait::cli {
namespace {

// Says on stderr what the session wants to know of a choice.
void explain(const Choice& choice, const Session& session) {
  if (!choice.note.empty() && (session.explain || !session.quiet))
    fmt::print(stderr, "plait: {}{}\n", session.explain ? "" : "warning: ", choice.note);
  if (!session.explain) return;
  for (const std::string& reason : choice.reasons) fmt::print(stderr, "plait: {}\n", reason);
}

}  // namespace

Layout decided_layout(World& world, const Session& session, GraphRun& run) {
  run.question.open_strategy = session.open_strategy;
  run.question.open_partition = session.open_partition;
  run.question.open_settings = session.open_settings;
  run.seed = session.seed;
  Choice choice = choose(world, run);
  if (world.number_of(world.rank()) == 0) explain(choice, session);  // other hosts choose, too
  Partition partition = chosen_partition(world, run, choice.route.partition);
  return {std::move(choice), std::move(partition)};
}

void add_explain_option(CLI::App* command, Session& session) {
  command->add_flag("--explain", session.explain,
                    "Say on stderr which strategy, partition and settings of strategy get were "
                    "chosen, and why");
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

GraphRun training_on(const Dataset& dataset, const TrainConfig& config) {
  return {.dataset = [&dataset]() -> const Dataset& { return dataset; },
          .question = {.route = config.route,
                       .widths = moved_widths_of(config.model, dataset.features.is_sparse()),
                       .rows = moves_rows(config.model),
                       .model = config.model.kind,
                       .times = static_cast<double>(moves_per_step(config.model)) * config.epochs},
          .plan =
              [config, &dataset](const Partition& partition, const Route& route) {
                TrainConfig by_route = config;
                by_route.route = route;
                return plan_training(dataset, partition, by_route);
              }};
}

}  // namespace plait::cli
