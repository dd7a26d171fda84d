#include "cli/options/train_options.h"

#include "cli/options/get_options.h"
#include "cli/options/model_options.h"
#include "cli/ranks.h"
#include "plait/aggregate/route_choice.h"
#include "plait/base/error.h"
#include "plait/nn/model.h"
#include "plait/plan/route.h"

namespace plait::cli {
namespace {

constexpr double kMostRate = 1e30;  // Adam's steps with it still fit float32

// GPUs of several hosts train on samples, for which each host has the whole graph.
void note_hosts(Session& session, const TrainConfig& train) {
  if (!train.sampled && !session.needs_one_host.empty())
    session.needs_one_host += ", or train on samples (--sampled)";
  if (!train.sampled) return;
  session.needs_one_host = train.sampled->cooperative ? reason_against_hosts() : "";
  session.replica_per_host = !train.sampled->cooperative;
}

}  // namespace

void complete(const CLI::App& command, Session& session, TrainOptions& o) {
  o.train.model.seed = session.seed;
  apply_model_defaults(command, o.train);
  o.train.sampled = sampled_of(o.samples, o.train.model.layers);
  note_hosts(session, o.train);
}

void require_consistent(const TrainOptions& o, int ranks) {
  require<UsageError>(o.train.precision != Precision::tf32 || o.train.route.gpu,
                      "--precision tf32 is for products on GPUs; give --gpus");
  require_wire_used(o.train.route, ranks);
  require<UsageError>(o.train.precision == Precision::fp32 || !o.train.route.exact,
                      "--precision {} rounds the factors of products; leave it out, or --exact",
                      to_string(o.train.precision));
}

void add_train_options(CLI::App* command, Session& session, TrainOptions& o) {
  TrainConfig& t = o.train;
  const auto option = [&](const char* name, auto& value, const std::string& text) {
    return command->add_option(name, value, text)->capture_default_str();
  };
  const auto by_kind = [&](const char* name, auto& value, const std::string& text) {
    return command->add_option(name, value, text)->default_str("by model");
  };
  command->add_option("graph", o.graph, "Graph or set of graphs, with features and labels")
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
  add_sample_options(command, o.samples);
  as_output(session,
            option("--checkpoint", t.checkpoint, "File that keeps the weights (safetensors)"));
  option("--checkpoint-every", t.checkpoint_every,
         "Number of epochs between checkpoints; 0: only at the end");
  session.replaceable.push_back(option("--resume", t.resume, "Checkpoint to continue from"));
  add_route_options(command, session, o.train.route);
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
  add_optimise_option(command, o.optimise);
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
}

}  // namespace plait::cli
