// plait plan GRAPH: shows the bytes of each array on each rank, before anything is allocated. With
// --gpus, these are bytes of the GPUs' memory. With --store, the arrays are those of a dataset that
// is kept for training on samples (store_plan.h), or of embedding tables (embeddings_plan.h).
#include <fmt/core.h>

#include <algorithm>

#include "cli/commands/embeddings_plan.h"
#include "cli/commands/get_explanation.h"
#include "cli/commands/memory_table.h"
#include "cli/commands/store_plan.h"
#include "cli/ranks.h"
#include "cli/route_predictor.h"
#include "plait/aggregate/run_memory.h"
#include "plait/base/gpu.h"
#include "plait/base/limits.h"
#include "plait/base/profile.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/model.h"
#include "plait/nn/training/trainable.h"
#include "plait/plan/route.h"

namespace plait::cli {
namespace {

struct Options {
  std::string graph;
  Route route;
  std::uint64_t width = 0;
  bool train = false;
  std::string model = "gcn";
  int layers = 0;  // 0: by model
  StoreOptions store;
  EmbeddingsOptions embeddings;
};

int ranks_of(const Session& session) { return std::max(session.ranks, session.gpus); }

// The memory of a run, and the layers of its model, if it trains one.
struct RunPlan {
  MemoryPlan memory;
  std::vector<LayerPlan> layers;
};

RunPlan make_plan(const Options& o, const Session& session, const Dataset& dataset) {
  const Timed phase("plan");
  require_wire_used(o.route, ranks_of(session));
  const auto layout_for = [&](GraphRun run) {
    run.question.ranks = ranks_of(session);
    return decided_layout(*World::alone(), session, run);
  };
  if (!o.train) {
    const auto plan = [&](const Partition& partition, const Route& route) {
      return plan_run(dataset.graph, dataset.symmetric, partition,
                      {.route = route, .shards = {.transposed = false}, .widths = {o.width}});
    };
    const Layout layout = layout_for({.dataset = [&]() -> const Dataset& { return dataset; },
                                      .question = {.route = o.route, .widths = {o.width}},
                                      .plan = plan});
    const Route& route = layout.choice.route;
    if (session.explain && route.gets_on_gpus())
      for (const std::string& line :
           explain_get(dataset.graph, layout.partition, route.get, o.width))
        fmt::print(stderr, "plait: {}\n", line);
    return {plan(layout.partition, route), {}};
  }
  TrainConfig config{.route = o.route};
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // larger settings are absurd, and alike
  ModelConfig model = default_model(o.model);
  model.hidden = static_cast<std::int64_t>(std::min(o.width, kMost));
  if (o.layers > 0) model.layers = o.layers;
  config.model = model_for(model, dataset);
  check_dataset(dataset, config);
  require_wire_used(config.model, dataset.features.is_sparse(), o.route, ranks_of(session));
  const Layout layout = layout_for(training_on(dataset, config));
  config.route = layout.choice.route;
  return {plan_training(dataset, layout.partition, config),
          layer_plans_of(config.model, dataset.features.is_sparse())};
}

void print_layers(const std::vector<LayerPlan>& layers) {
  if (layers.empty()) return;
  fmt::print("{:<8}{:>12}{:>12}  {:<16}{:>12}\n", "layer", "width in", "width out", "order",
             "crosses");
  for (std::size_t l = 0; l < layers.size(); ++l)
    fmt::print("{:<8}{:>12}{:>12}  {:<16}{:>12}\n", l, layers[l].shape.in, layers[l].shape.out,
               to_string(layers[l].order), layers[l].moved_width);
}

void print_text(const RunPlan& run, int ranks) {
  print_layers(run.layers);
  print_memory(run.memory, ranks);
}

json to_json(const Options& o, const Dataset& dataset, const RunPlan& run) {
  json result = memory_json(run.memory);
  result["graph"] = dataset.name;
  result["width"] = o.width;
  if (o.train) result["layers"] = json::array();
  for (const LayerPlan& layer : run.layers)
    result["layers"].push_back({{"in", layer.shape.in},
                                {"out", layer.shape.out},
                                {"order", to_string(layer.order)},
                                {"crosses", layer.moved_width}});
  return result;
}

void run(const Options& o, const Session& session) {
  if (!o.embeddings.rows.empty()) return plan_embedding_tables(o.embeddings, session, o.width);
  require<UsageError>(!o.graph.empty(),
                      "plan needs a graph file, or --store and --embeddings with rows of tables");
  require<UsageError>(o.store.store || o.width > 0, "--width is required unless --store is given");
  const Dataset dataset = read_graph(o.graph, session);
  if (o.store.store) return plan_stored(o.store, session, dataset, o.width);
  if (session.gpus > 0) plan_by_measured_machine(session);
  const RunPlan run = make_plan(o, session, dataset);
  const FreeNow free = show_beside_free(run.memory, session, to_json(o, dataset, run),
                                        [&] { print_text(run, ranks_of(session)); });
  session.gpus > 0 ? require_fit_on_gpus(run.memory, free.gpus)
                   : require_fit(run.memory, free.host);
}

}  // namespace

void add_plan(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, session, "plan", "Show the memory that a run would take, per rank and array",
                  [=, &session] { run(*o, session); });
  CLI::Option* const graph =
      command->add_option("graph", o->graph, "Graph file; none, if embedding tables are planned");
  add_reading_options(command, session);
  command
      ->add_option("--width,--dim,--hidden", o->width,
                   "Features per row that are aggregated; with --store, features that are stored, "
                   "which need not be named if the graph has some")
      ->check(CLI::Validator(
          [](const std::string& width) { return width == "0" ? "use 1 or more, not 0" : ""; }, ""))
      ->default_str("none");
  add_route_options(command, session, o->route);
  add_explain_option(command, session);
  CLI::Option* const train = command->add_flag(
      "--train", o->train,
      "Count the memory of training a model, and show its layers; --width is the features between "
      "layers");
  show_words(command->add_option("--model", o->model, "Kind of model to train")
                 ->capture_default_str()
                 ->needs(train),
             model_kinds());
  command->add_option("--layers", o->layers, "Number of layers")
      ->default_str("by model")
      ->check(in_range(1, kMostLayers))
      ->needs(train);
  add_store_options(command, o->store);
  add_embeddings_options(command, o->embeddings);
  command->get_option("--embeddings")->excludes(command->get_option("--structure"));
  graph->excludes(command->get_option("--embeddings"));
  for (const char* other :
       {"--train", "--strategy", "--partition", "--wire", "--exact", "--explain"})
    command->get_option("--store")->excludes(command->get_option(other));
  add_profile_options(command, session);
  group_options(command,
                {{"Run", {"--width"}},
                 {"Store", {"--store", "--structure"}},
                 {"Embedding tables",
                  {"--embeddings", "--dtype", "--ids", "--samples", "--split", "--optimizer"}},
                 {"Model", {"--train", "--model", "--layers"}}});
  add_examples(command,
               "  plait plan products.plait --ranks 4 --width 128\n"
               "  plait plan products.plait --gpus 4 --width 128 --train  # memory of each GPU\n"
               "  plait plan products.plait --ranks 4 --train --model gin --layers 5 --hidden 64\n"
               "  plait plan products.plait --gpus 4 --store\n"
               "  plait plan --store --embeddings 40000000,3000 --width 128 --dtype bf16 --gpus 2\n"
               "The exit code is 4 if the run does not fit on this machine.");
}

}  // namespace plait::cli
