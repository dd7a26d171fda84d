// plait train GRAPH: trains on the full graph or on samples of it, from the file to the accuracy.
#include "plait/nn/training/train.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/options/option_rules.h"
#include "cli/options/train_options.h"
#include "cli/ranks.h"
#include "cli/run_json.h"
#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/progress.h"
#include "plait/base/timer.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/model.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/training/epochs.h"
#include "plait/nn/training/trainable.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"

namespace plait::cli {
namespace {

void print_text(const TrainOptions& o, const Session& session, const World& world,
                const TrainResult& result) {
  const EpochResult& best = result.best();
  fmt::print("{} on {}{}{}: {}, loss {:.4f}\n", o.train.model.kind, ranks_of(world, session),
             o.train.route.exact ? ", exactly" : "", on_the_wire(o.train.route),
             counted(result.epochs.size(), "epoch"), result.epochs.back().loss);
  fmt::print("{} at epoch {}: train {:.2f}%, validation {:.2f}%, test {:.2f}%\n",
             to_string(result.metric), result.best_epoch, 100 * best.train_metric,
             100 * best.validation_metric, 100 * best.test_metric);
  fmt::print("time per epoch {:.2f} ms, {:.1f}% of it communication; {} bytes per rank and epoch\n",
             result.epoch_ms, 100 * result.comm_share, result.bytes_per_rank);
}

// Collective. Returns the run whose route is to be chosen. Throws UsageError if the model cannot be
// trained on the dataset, or an option does nothing for them.
GraphRun run_of(const TrainOptions& o, const Session& session, World& world,
                const Dataset& dataset) {
  const DatasetFacts facts = facts_of(dataset);
  require_read(*session.command, &facts);
  TrainConfig whole = o.train;
  whole.model = model_for(o.train.model, dataset);
  check_dataset(dataset, whole);
  require_wire_used(whole.model, dataset.features.is_sparse(), whole.route, world.size());
  GraphRun run = training_on(dataset, whole);
  RouteQuestion& question = run.question;
  // Trials that are off choose nothing by earlier ones either. Steps on samples are other steps.
  if (o.optimise == Optimise::off || o.train.sampled) question.model.clear();
  const bool moves = std::ranges::max(question.widths) > 0;
  if (moves && !o.train.sampled && may_try(o.optimise, o.train.route.gpu))
    question.possible = worthwhile_strategies(world, o.train.route);
  return run;
}

// Returns the partition, and sets in the options what else was decided.
Partition decide(TrainOptions& o, const Session& session, World& world, GraphRun& run) {
  World& placing = graph_ranks(world, o.train);
  run.question.ranks = placing.size();
  Layout layout;
  on_all_hosts(world, placing, [&] { layout = decided_layout(placing, session, run); });
  o.train.route = run.question.route = layout.choice.route;
  o.train.passes = layout.choice.passes;
  o.train.trials = layout.choice.trials;
  if (world.rank() == 0) say_untried(o.optimise, layout.choice.untried, session);
  return std::move(layout.partition);
}

TrainResult train(Trainer& trainer, const Dataset& dataset, int epochs) {
  keep_freed_memory();  // not before: checks of free memory count kept memory as taken
  const std::atomic<bool>& stop = stop_on_signals();
  Progress progress(fmt::format("training {}", dataset.name), static_cast<std::uint64_t>(epochs));
  return trainer.run([&](const EpochResult&) { progress.advance(1); }, stop);
}

void run(TrainOptions o, const Session& session, World& world) {
  const Stopwatch watch;
  require_consistent(o, world.size());
  torch_device(o.train.route.gpu);  // before the backward passes that plan a long run
  const Dataset dataset = read_graph(world, o.graph, session);
  read_sample_times(world, dataset, o.samples, o.train.sampled);
  GraphRun graph_run = run_of(o, session, world, dataset);
  const Partition partition = decide(o, session, world, graph_run);
  Trainer trainer(world, dataset, partition, o.train);
  const std::vector<double> setup = gather_values(world, watch.seconds());
  const TrainResult result = train(trainer, dataset, o.train.epochs);
  o.train.route.strategy = result.way.strategy;
  if (o.train.sampled) o.train.sampled->structure = result.structure;
  if (world.rank() == 0 && !result.trials.empty())
    keep_trials(result, graph_run, static_cast<int>(world.ranks_of_host().size()), session);
  if (world.rank() == 0 && session.json)
    print_json(
        run_to_json({dataset.name, device_name(session), world.size()}, o.train, result, setup));
  else if (world.rank() == 0)
    print_text(o, session, world, result);
  // Last, because stderr may be a terminal that has been closed.
  if (world.rank() == 0 && !result.trials.empty()) {
    if (!session.explain) say_untried(o.optimise, why_untried(result), session);
    explain_trials(result, session);
  }
  require<Interrupted>(
      !result.interrupted, "{}",
      interruption(result.epochs.size(), result.steps, result.steps_per_epoch, o.train.checkpoint));
}

}  // namespace

void add_train(CLI::App& app, Session& session) {
  auto o = std::make_shared<TrainOptions>();
  CLI::App* const command = add_command(
      app, session, "train", "Train a graph neural network on one graph", [o, &app, &session] {
        complete(*app.get_subcommand("train"), session, *o);
        on_ranks(session, [&](World& world) { run(*o, session, world); });
      });
  add_train_options(command, session, *o);
  add_examples(command,
               "  plait train cora.plait --model gcn --ranks 2\n"
               "  plait train products.plait --hidden 256 --layers 3 --gpus 4\n"
               "  plait train cora.plait --model gat --lr 0.01\n"
               "  plait train minesweeper.plait --model sage --layers 5 --metric roc-auc\n"
               "  plait train mutag.plait --model gin --hidden 32 --folds 10 --fold 3\n"
               "  plait train products.plait --gpus 4 --explain\n"
               "  plait train products.plait --model sage --sampled --fanout 15,10 --batch 512\n"
               "  plait train papers.plait --sampled --vertex-times years.npy --latest\n"
               "  plait train cora.plait --checkpoint cora.safetensors --json > run.json\n"
               "  torchrun --standalone --nproc-per-node 4 --no-python plait train products.plait");
}

}  // namespace plait::cli
