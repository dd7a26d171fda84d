// plait train GRAPH: trains on the full graph or on samples of it, from the file to the accuracy.
#include "plait/nn/training/train.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/options/get_options.h"
#include "cli/options/model_options.h"
#include "cli/options/option_rules.h"
#include "cli/options/sample_options.h"
#include "cli/ranks.h"
#include "cli/run_json.h"
#include "cli/trials.h"
#include "plait/aggregate/route_choice.h"
#include "plait/base/error.h"
#include "plait/base/memory.h"
#include "plait/base/progress.h"
#include "plait/base/timer.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/model.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/nn/training/epochs.h"
#include "plait/nn/training/trainable.h"
#include "plait/plan/choose.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/gather.h"

namespace plait::cli {
namespace {

constexpr double kMostRate = 1e30;  // Adam's steps with it still fit float32

struct Options {
  TrainConfig train;
  std::string graph;
  Optimise optimise = Optimise::automatic;
  SampleOptions samples;
};

// The run as one object: its settings, its epochs and its results.
json to_json(const Options& o, const Session& session, const World& world,
             const TrainResult& result) {
  json losses = json::array(), validation = json::array(), validation_losses = json::array();
  for (const EpochResult& e : result.epochs) {
    losses.push_back(e.loss);
    validation.push_back(e.validation_metric);
    validation_losses.push_back(e.validation_loss);
  }
  const EpochResult& best = result.best();
  const bool accuracy = result.metric == MetricKind::accuracy;
  json all = {{"model", o.train.model.kind},
              {"ranks", world.size()},
              {"seed", o.train.model.seed},
              {"strategy", to_string(o.train.route.strategy)},
              {"partition", to_string(o.train.route.partition)},
              {"wire", to_string(o.train.route.wire)},
              {"exact", o.train.route.exact},
              {"precision", to_string(o.train.precision)},
              {"tf32", o.train.precision == Precision::tf32},
              {"epochs", result.epochs.size()},
              {"loss", losses},
              {"val_loss_by_epoch", validation_losses},
              {"metric", to_string(result.metric)},
              {"val_metric_by_epoch", validation},
              {"best_epoch", result.best_epoch},
              {"train_metric", best.train_metric},
              {"val_metric", best.validation_metric},
              {"test_metric", best.test_metric},
              {"epoch_ms", result.epoch_ms},
              {"comm_share", result.comm_share},
              {"bytes_per_rank", result.bytes_per_rank},
              {"interrupted", result.interrupted},
              {"device", device_name(session)}};
  if (accuracy)
    for (const char* part : {"train", "val", "test"})
      all[fmt::format("{}_accuracy", part)] = all[fmt::format("{}_metric", part)];
  if (accuracy) all["val_accuracy_by_epoch"] = validation;
  all.update(trials_to_json(result));
  all.update(sampled_to_json(o.train.sampled));
  if (o.train.sampled && o.train.route.gpu) all["replayed_steps"] = result.replayed_steps;
  if (o.train.route.gets_on_gpus()) all["get"] = cli::to_json(o.train.route.get);
  return all;
}

void print_text(const Options& o, const Session& session, const World& world,
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

// GPUs of several hosts train on samples, for which each host has the whole graph.
void note_hosts(Session& session, const TrainConfig& train) {
  if (!train.sampled && !session.needs_one_host.empty())
    session.needs_one_host += ", or train on samples (--sampled)";
  if (!train.sampled) return;
  session.needs_one_host = train.sampled->cooperative ? reason_against_hosts() : "";
  session.replica_per_host = !train.sampled->cooperative;
}

void run(Options o, const Session& session, World& world) {
  const Stopwatch watch;
  require<UsageError>(o.train.precision != Precision::tf32 || o.train.route.gpu,
                      "--precision tf32 is for products on GPUs; give --gpus");
  require_wire_used(o.train.route, world.size());
  require<UsageError>(o.train.precision == Precision::fp32 || !o.train.route.exact,
                      "--precision {} rounds the factors of products; leave it out, or --exact",
                      to_string(o.train.precision));
  torch_device(o.train.route.gpu);  // before the backward passes that plan a long run
  const Dataset dataset = read_graph(world, o.graph, session);
  read_sample_times(world, dataset, o.samples, o.train.sampled);
  const DatasetFacts facts = facts_of(dataset);
  require_read(*session.command, &facts);
  TrainConfig whole = o.train;
  whole.model = model_for(o.train.model, dataset);
  check_dataset(dataset, whole);
  require_wire_used(whole.model, dataset.features.is_sparse(), whole.route, world.size());
  Moved moved = moved_by(whole, dataset);
  if (o.optimise == Optimise::off) moved.model.clear();  // earlier trials choose nothing either
  const bool moves = std::ranges::max(moved.widths) > 0;
  moved.tries = moves && !o.train.sampled && may_try(o.optimise, o.train.route.gpu);
  World& placing = graph_ranks(world, o.train);
  Layout layout;
  on_all_hosts(world, placing, [&] {
    layout = decided_layout(placing, dataset, session, o.train.route, moved, o.train.model.seed);
  });
  o.train.route = layout.route;
  o.train.passes = layout.passes;
  o.train.trials = layout.trials;
  Trainer trainer(world, dataset, layout.partition, o.train);
  const std::vector<double> setup = gather_values(world, watch.seconds());
  keep_freed_memory();  // not before: checks of free memory count kept memory as taken

  const std::atomic<bool>& stop = stop_on_signals();
  TrainResult result;
  {
    Progress progress(fmt::format("training {}", dataset.name),
                      static_cast<std::uint64_t>(o.train.epochs));
    result = trainer.run([&](const EpochResult&) { progress.advance(1); }, stop);
  }
  o.train.route.strategy = result.way.strategy;
  if (o.train.sampled) o.train.sampled->structure = result.structure;
  if (world.rank() == 0 && !result.trials.empty()) {
    const auto here = static_cast<int>(world.ranks_of_host().size());
    const auto key = [&] { return measured_key(dataset, session.gpus > 0, world.size(), here); };
    keep_trials(result, o.train.route, moved, key, session);
  }
  if (world.rank() == 0 && session.json) {
    json out = to_json(o, session, world, result);
    out["graph"] = dataset.name;
    out.update(costs_to_json(result, setup));
    print_json(out);
  } else if (world.rank() == 0) {
    print_text(o, session, world, result);
  }
  // Last, because stderr may be a terminal that has been closed.
  if (world.rank() == 0 && !result.trials.empty()) explain_trials(result, session);
  require<Interrupted>(
      !result.interrupted, "{}",
      interruption(result.epochs.size(), result.steps, result.steps_per_epoch, o.train.checkpoint));
}

}  // namespace

void add_train(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  TrainConfig& t = o->train;
  CLI::App* command = add_command(
      app, session, "train", "Train a graph neural network on one graph", [o, &app, &session] {
        const CLI::App& given = *app.get_subcommand("train");
        o->train.model.seed = session.seed;
        apply_model_defaults(given, o->train);
        o->train.sampled = sampled_of(o->samples, o->train.model.layers);
        note_hosts(session, o->train);
        on_ranks(session, [&](World& world) { run(*o, session, world); });
      });
  const auto option = [&](const char* name, auto& value, const std::string& text) {
    return command->add_option(name, value, text)->capture_default_str();
  };
  const auto by_kind = [&](const char* name, auto& value, const std::string& text) {
    return command->add_option(name, value, text)->default_str("by model");
  };
  command->add_option("graph", o->graph, "Graph or set of graphs, with features and labels")
      ->required();
  add_reading_options(command, session);
  add_model_options(command, t.model);
  option("--epochs", t.epochs,
         "Number of epochs; an epoch is one step on the whole graph or, with --sampled, as many as "
         "take each training example once")
      ->check(in_range(1, 10000000));
  by_kind("--lr", t.learning_rate, "Learning rate of Adam")->check(in_range(0.0, kMostRate));
  by_kind("--weight-decay", t.weight_decay,
          "L2 penalty on the weights of all layers (" + model_kinds(KindTrait::decay_last) +
              ") or of all layers but the last")
      ->check(in_range(0.0, kMostRate));
  option("--patience", t.patience,
         "Number of epochs without a lower validation loss after which to stop; 0: never");
  CLI::Option* const split = option("--split", t.split, "Number of the split of the graph, from 0");
  command
      ->add_option(
          "--folds", t.folds.count,
          "Number of folds to use instead of the file's split. One fold tests, the next one "
          "validates. 10 for a set of graphs without a split")
      ->check(in_range(3, 1000000))
      ->excludes(split);
  option("--fold", t.folds.test, "Number of the fold that tests, from 0");
  add_choice(
      command, "--metric", t.metric, parse_metric, "auto",
      "Metric that chooses the best epoch: roc-auc for two classes, micro-f1 for several labels "
      "per vertex, auto by the labels");
  add_choice(command, "--pool", t.model.pool, parse_pool, "none",
             "Pooling in a set of graphs: sum or mean of each graph's vertices")
      ->default_str("by model");
  add_choice(command, "--normalize", t.normalize, parse_normalize, "auto",
             "Normalisation of features: rows to sum 1, unit to length 1, auto by their kind");
  option("--seed", session.seed, "Seed of weights, dropout and samples");
  add_sample_options(command, o->samples);
  as_output(session,
            option("--checkpoint", t.checkpoint, "File that keeps the weights (safetensors)"));
  option("--checkpoint-every", t.checkpoint_every,
         "Number of epochs between checkpoints; 0: only at the end");
  session.replaceable.push_back(option("--resume", t.resume, "Checkpoint to continue from"));
  add_route_options(command, session, o->train.route);
  CLI::Option* const precision = add_choice(
      command, "--precision", t.precision, parse_precision, "fp32",
      "Numbers to which the factors of dense products are rounded: tf32 (10 bits, on GPUs) and "
      "bf16 (7 bits) are faster on GPUs. Sums and weights are float32");
  command
      ->add_flag_callback(
          "--tf32", [&t] { t.precision = Precision::tf32; }, "The same as --precision tf32")
      ->excludes(precision);
  CLI::Option* const recorded = command->add_flag_callback(
      "--recorded", [&t] { t.record = true; },
      "On GPUs: replay a recorded step (CUDA graph) where that is possible, also on samples on one "
      "GPU, where it is not the default");
  command
      ->add_flag_callback(
          "--unrecorded", [&t] { t.record = false; },
          "On GPUs: enqueue every step anew, and replay no recorded one; for comparison")
      ->excludes(recorded);
  add_explain_option(command, session);
  add_optimise_option(command, o->optimise);
  add_timeout_options(command, session);
  add_profile_options(command, session);
  group_options(
      command,
      {{"Main options", {"--model", "--ranks", "--gpus"}},
       {"Model",
        {"--layers", "--hidden", "--heads", "--output-heads", "--aggregation", "--norm",
         "--residual", "--activation", "--dropout", "--pool"}},
       {"Training",
        {"--epochs", "--lr", "--weight-decay", "--patience", "--metric", "--seed", "--precision",
         "--tf32", "--recorded", "--unrecorded"}},
       {"Mini-batches",
        {"--sampled", "--fanout", "--batch", "--prefetch", "--structure", "--cooperative",
         "--by-weight", "--with-replacement", "--vertex-times", "--edge-times", "--example-times",
         "--latest"}},
       {"Graph", {"--split", "--folds", "--fold", "--normalize"}},
       {"Files", {"--checkpoint", "--checkpoint-every", "--checkpoint-steps", "--resume"}}});
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
