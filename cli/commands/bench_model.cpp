// plait bench model GRAPH: times inference and training steps of a whole model by several
// strategies, on any graph.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "cli/options/model_options.h"
#include "cli/options/option_rules.h"
#include "cli/ranks.h"
#include "plait/aggregate/shared_partition.h"
#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/io/stated_counts.h"
#include "plait/measure/made_data.h"
#include "plait/measure/model_bench.h"
#include "plait/nn/memory/work_memory.h"
#include "plait/nn/model.h"
#include "plait/plan/route.h"
#include "plait/world/gather.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

// The sizes of the data that are made where the graph has none and no option says otherwise.
constexpr std::uint64_t kWidth = 64;
constexpr std::int32_t kClasses = 16;

struct Options {
  std::string graph;
  TrainConfig train;
  MadeData made;
  std::vector<std::string> strategies;  // empty: those that can be worth their while
  Route route;                          // without a strategy
  bool training = false;
  BenchEffort effort{.repetitions = 5};
};

struct Row {
  const char* work;
  Strategy strategy;
  ModelTimes measured;
};

// Returns the strategies that were asked for. Throws UsageError for one that is unknown, that is
// not of the device, or that does not bring what the model reads.
std::vector<Strategy> strategies_of(const Options& o) {
  std::vector<Strategy> found;
  for (const std::string& name : o.strategies) {
    Route route = o.route;
    route.strategy = parse_strategy(name);
    route = resolved(route);
    if (moves_rows(o.train.model)) require_rows(route);
    found.push_back(route.strategy);
  }
  return found;
}

// Collective. Returns the strategies that can be worth their while.
std::vector<Strategy> standard_strategies(World& world, const Options& o) {
  const Strategy standard = resolved(o.route).strategy;
  if (world.size() == 1) return {standard};  // nothing moves between ranks
  std::vector<Strategy> found = worthwhile_strategies(world, o.route);
  std::erase_if(found, [&](Strategy strategy) {
    const bool slow = o.route.gpu && strategy == Strategy::get;
    const bool rows = traits_of(strategy).on(o.route.gpu).brings_rows;
    return slow || (moves_rows(o.train.model) && !rows);
  });
  return found;
}

// Collective.
std::vector<Strategy> strategies_to_time(World& world, const Options& o) {
  std::vector<Strategy> asked = strategies_of(o);
  return asked.empty() ? standard_strategies(world, o) : asked;
}

// Returns the data to make for a graph that has features or labels, or not.
MadeData data_to_make(MadeData made, bool featured, bool labelled) {
  if (made.width == 0 && !featured) made.width = kWidth;
  if (made.classes == 0 && !labelled) made.classes = kClasses;
  return made;
}

// The graph, and the data that are to be made.
struct Input {
  Dataset dataset;
  MadeData made;
  Partition partition;
};

std::vector<Route> routes_of(const Options& o, const std::vector<Strategy>& strategies) {
  std::vector<Route> routes(strategies.size(), o.route);
  for (std::size_t i = 0; i < routes.size(); ++i) routes[i].strategy = strategies[i];
  return routes;
}

// Throws DoesNotFitError if a strategy that was asked for is refused, or all of them. `refusals`:
// one for each, or an empty text.
void require_fitting(const Options& o, const std::vector<std::string>& refusals) {
  const auto refused = [](const std::string& text) { return !text.empty(); };
  const auto first = std::ranges::find_if(refusals, refused);
  const bool enough = o.strategies.empty() && !std::ranges::all_of(refusals, refused);
  require<DoesNotFitError>(first == refusals.end() || enough, "{}",
                           first == refusals.end() ? "" : *first);
}

// Returns the counts that the graph's file states on all ranks, with the data that will be made.
std::optional<GraphCounts> counts_of(World& world, const Options& o) {
  std::optional<GraphCounts> counts = stated_counts(o.graph);
  const auto all = gather_values(world, counts.value_or(GraphCounts{}));
  if (!counts || counts->vertices == 0 ||
      std::ranges::any_of(all, [&](const GraphCounts& c) { return c != *counts; }))
    return {};
  const MadeData made = data_to_make(o.made, counts->width > 0, counts->classes > 0);
  if (made.width > 0) counts->width = made.width, counts->sparse = false;
  if (made.classes > 0) counts->classes = made.classes, counts->set_of_graphs = false;
  return counts;
}

Input read_input(World& world, const Options& o, const Session& session,
                 const std::vector<Strategy>& strategies) {
  const std::optional<GraphCounts> counts = counts_of(world, o);
  if (counts && !counts->sparse && !counts->set_of_graphs)  // refused before it is read
    require_fitting(o,
                    bench_refusals(world, *counts, o.train, routes_of(o, strategies), o.training));
  Dataset dataset = read_graph(world, o.graph, session);
  const DatasetFacts facts = facts_of(dataset);
  require_read(*session.command, &facts);
  const bool labelled = !dataset.labels.empty() || !dataset.label_sets.empty();
  const MadeData made = data_to_make(o.made, !dataset.features.empty(), labelled);
  Partition partition = shared_partition(world, dataset, o.route.partition, session.seed);
  return {std::move(dataset), made, std::move(partition)};
}

class ModelContest {
 public:
  ModelContest(const Options& o, World& world, const Session& session)
      : o_(o),
        world_(world),
        session_(session),
        strategies_(strategies_to_time(world, o)),
        input_(read_input(world, o, session, strategies_)),
        bench_(world, std::move(input_.dataset), input_.partition, o.train, input_.made) {}

  void run() {
    for (const Route& route : fitting_routes()) measure(route);
    require<DoesNotFitError>(!rows_.empty(), "{}",
                             refusals_.empty() ? "" : refusals_.back().second);
    if (world_.rank() == 0) session_.json ? print_json(to_json()) : print_text();
  }

 private:
  // Plans all work before any of it takes memory. Throws as require_fitting().
  std::vector<Route> fitting_routes() {
    const Phase phase("planning memory");
    const std::vector<Route> routes = routes_of(o_, strategies_);
    const std::vector<std::string> refusals = bench_.plan(routes, o_.training);
    require_fitting(o_, refusals);
    std::vector<Route> fitting;
    for (std::size_t i = 0; i < routes.size(); ++i)
      if (refusals[i].empty())
        fitting.push_back(routes[i]);
      else
        refusals_.emplace_back(strategies_[i], refusals[i]);
    return fitting;
  }

  void measure(const Route& route) {
    const Strategy strategy = route.strategy;
    const Phase phase(fmt::format("measuring {}", to_string(strategy)));
    try {
      rows_.push_back({"inference", strategy, bench_.time_inference(route, o_.effort)});
      if (o_.training)
        rows_.push_back({"training", strategy, bench_.time_training(route, o_.effort)});
    } catch (const DoesNotFitError& error) {  // on all ranks
      if (!o_.strategies.empty()) throw;
      refusals_.emplace_back(strategy, error.what());
    }
  }

  ModelConfig model() const { return model_for(o_.train.model, bench_.dataset()); }

  json to_json() const {
    json rows = json::array(), refused = json::array();
    for (const auto& [work, strategy, measured] : rows_)
      rows.push_back({{"work", work},
                      {"strategy", to_string(strategy)},
                      {"setup_s", measured.setup_s},
                      {"median_ms", measured.times.median()},
                      {"least_ms", measured.times.least()},
                      {"most_ms", measured.times.most()},
                      {"bytes", measured.bytes},
                      {"difference", measured.difference}});
    for (const auto& [strategy, why] : refusals_)
      refused.push_back({{"strategy", to_string(strategy)}, {"why", why}});
    const ModelConfig m = model();
    return {{"graph", bench_.dataset().name},
            {"vertices", bench_.dataset().vertices()},
            {"edges", bench_.dataset().edges()},
            {"model", m.kind},
            {"layers", m.layers},
            {"hidden", m.hidden},
            {"heads", m.heads},
            {"norm", to_string(m.norm)},
            {"dropout", m.dropout},
            {"width", m.inputs},
            {"features_made", input_.made.width > 0},
            {"classes", m.outputs},
            {"labels_made", input_.made.classes > 0},
            {"parameters", bench_.parameters()},
            {"ranks", world_.size()},
            {"device", device_name(session_)},
            {"partition", to_string(o_.route.partition)},
            {"seed", session_.seed},
            {"loss", bench_.losses()},
            {"rows", rows},
            {"does_not_fit", refused}};
  }

  void print_text() const {
    const ModelConfig m = model();
    const auto source = [](bool made) { return made ? "made" : "of the graph"; };
    fmt::print("{} on {}, {}, partition {}\n", m.kind, printable(bench_.dataset().name),
               ranks_of(world_, session_), to_string(o_.route.partition));
    fmt::print("{}, {} wide; {} features ({}), {} classes ({}); dropout {:g}; {} parameters\n",
               counted(static_cast<std::uint64_t>(m.layers), "layer"), m.hidden, m.inputs,
               source(input_.made.width > 0), m.outputs, source(input_.made.classes > 0), m.dropout,
               bench_.parameters());
    fmt::print("{:<10} {:<10} {:>9} {:>11} {:>10} {:>10} {:>14}\n", "work", "strategy", "setup s",
               "median ms", "least", "most", "bytes");
    for (const auto& [work, strategy, measured] : rows_)
      fmt::print("{:<10} {:<10} {:>9.3f} {:>11.3f} {:>10.3f} {:>10.3f} {:>14}\n", work,
                 to_string(strategy), measured.setup_s, measured.times.median(),
                 measured.times.least(), measured.times.most(), measured.bytes);
    for (const auto& [strategy, why] : refusals_)
      fmt::print("{} was left out: {}\n", to_string(strategy), why);
  }

  const Options& o_;
  World& world_;
  const Session& session_;
  const std::vector<Strategy> strategies_;
  Input input_;  // without the dataset, which the bench has
  ModelBench bench_;
  std::vector<Row> rows_;
  std::vector<std::pair<Strategy, std::string>> refusals_;  // strategies that do not fit
};

// Before any rank starts.
void prepare(Options& o, const CLI::App& command, Session& session) {
  o.train.model.seed = o.made.seed = session.seed;
  apply_model_defaults(command, o.train);
  o.route.gpu = session.gpus > 0;
  resolved(o.route);  // refuses a transport that does not suit the device
  for (Route route = o.route; const Strategy strategy : strategies_of(o)) {
    route.strategy = strategy;
    note_needs(session, route);
  }
}

void add_options(CLI::App* command, Session& session, Options& o) {
  command->add_option("graph", o.graph, "Graph, with or without features and labels")->required();
  add_reading_options(command, session);
  add_model_options(command, o.train.model);
  command
      ->add_option("--width,--dim", o.made.width,
                   "Features per vertex to make; without it, the graph's own features, or 64 if it "
                   "has none")
      ->check(in_range(1, 1 << 20));
  command
      ->add_option("--classes", o.made.classes,
                   "Classes to make labels of, one per vertex; without it, the graph's own "
                   "labels, or 16 classes if it has none")
      ->check(in_range(1, 65536));
  command->add_flag("--training", o.training,
                    "Time whole steps of training too, in which all labelled examples train");
  show_words(add_list(command, "--strategies", o.strategies,
                      "Strategies to time, with commas; without it, those that can be "
                      "the fastest on this device, as far as they fit"),
             words_of(Strategy{}));
  command->add_option("--repetitions", o.effort.repetitions, "Repetitions of each measurement")
      ->check(in_range(1, 10000))
      ->capture_default_str();
  add_choice(command, "--partition", o.route.partition, parse_partition_scheme, "edges",
             "Scheme that assigns vertices to ranks");
  add_rank_options(command, session, o.route.transport);
  command
      ->add_option("--seed", session.seed,
                   "Seed of weights, dropout, labels that are made and the partition (metis)")
      ->capture_default_str();
  add_timeout_options(command, session);
}

}  // namespace

void add_bench_model(CLI::App& bench, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(
      bench, session, "model",
      "Time inference and training steps of a whole model with several strategies, in one run",
      [o, &bench, &session] {
        prepare(*o, *bench.get_subcommand("model"), session);
        on_ranks(session, [&](World& world) { ModelContest(*o, world, session).run(); });
      });
  add_options(command, session, *o);
  group_options(command,
                {{"Main options", {"--model", "--width", "--classes", "--ranks", "--gpus"}},
                 {"Model",
                  {"--layers", "--hidden", "--heads", "--output-heads", "--aggregation", "--norm",
                   "--residual", "--activation", "--dropout"}},
                 {"Measurement", {"--training", "--strategies", "--repetitions", "--seed"}}});
  add_examples(command,
               "  plait generate dcsbm --like products --scale 0.1 --no-features -o p.plait\n"
               "  plait bench model p.plait --width 100 --classes 47 --ranks 2 --training\n"
               "  plait bench model p.plait --model gin --layers 5 --hidden 64 --ranks 2\n"
               "  plait bench model reddit.plait --model gat --gpus 4 --strategies "
               "pipelined,bulk --json");
}

}  // namespace plait::cli
