// plait tune GRAPH: times y = A x by each strategy and partition, and keeps the times. Later runs
// on this graph choose by them.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "cli/commands/tune_result.h"
#include "cli/ranks.h"
#include "cli/route_predictor.h"
#include "plait/aggregate/run_memory.h"
#include "plait/aggregate/shared_partition.h"
#include "plait/base/error.h"
#include "plait/base/printable.h"
#include "plait/base/profile.h"
#include "plait/measure/cuda/bench.h"
#include "plait/plan/route.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/launch.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

struct Options {
  std::string graph;
  std::vector<std::uint64_t> widths{16, 64, 128};
  std::vector<std::string> partitions{"edges", "vertices", "clusters"};
  Route standard;  // of a run for which nothing was measured
  BenchEffort effort{.repetitions = 5};
  bool dry = false;
  bool settings = false;  // search those of strategy get, too
  std::string plot;       // path of the heat map; empty: none
};

// Throws UsageError for words that are none.
std::vector<PartitionScheme> partitions_of(const Options& o) {
  std::vector<PartitionScheme> schemes;
  for (const std::string& name : o.partitions) schemes.push_back(parse_partition_scheme(name));
  return schemes;
}

class Tuning {
 public:
  Tuning(const Options& o, World& world, const Session& session)
      : o_(o),
        world_(world),
        session_(session),
        dataset_(read_graph(world, o.graph, session)),
        key_(measured_key(dataset_, session.gpus > 0, world.size(),
                          static_cast<int>(world.ranks_of_host().size()))),
        folder_(o.dry ? "" : measured_routes_folder()),
        result_{.graph = dataset_.name,
                .ranks = ranks_of(world, session),
                .widths = o.widths,
                .question = {.route = o.standard,
                             .open_strategy = true,
                             .open_partition = true,
                             .open_settings = o.settings,
                             .ranks = world.size(),
                             .times = kOften},
                .measured = {},
                .predicted_ms = {},
                .counts = {}} {}

  void run() {
    on_all_or_none(world_, [&] {  // before all the work
      if (world_.rank() == 0) check_measured_routes(folder_, key_);
    });
    if (world_.rank() == 0) predictor_.emplace(dataset_.graph, world_.size(), session_);
    const std::vector<Strategy> tried = worthwhile_strategies(world_, o_.standard);
    require<UsageError>(!o_.settings || std::ranges::find(tried, Strategy::get) != tried.end(),
                        "--settings searches settings of strategy get, which needs GPUs that reach "
                        "each other's memory");
    for (const PartitionScheme scheme : partitions_of(o_)) {
      const Partition partition = shared_partition(world_, dataset_, scheme, session_.seed);
      if (world_.rank() == 0)
        result_.counts[scheme] =
            timed("count halo", [&] { return measure_partition(dataset_.graph, partition); });
      for (const Strategy strategy : tried) {
        const Phase phase(
            fmt::format("measuring {} with {}", to_string(scheme), to_string(strategy)));
        Route route = o_.standard;
        route.strategy = strategy, route.partition = scheme;
        if (o_.settings && strategy == Strategy::get)
          search(partition, route);
        else
          take(route, measure(partition, route));
      }
    }
    if (world_.rank() != 0) return;
    require<DoesNotFitError>(!result_.measured.empty(), "{}", refusal_);
    keep_measured_routes(folder_, key_, result_.measured);
    if (!o_.plot.empty()) write_heat_map(result_, o_.plot);
    session_.json ? print_json(to_json()) : print_text();
  }

 private:
  // Takes the times of the default settings, and of those that are the fastest at a width.
  void search(const Partition& partition, Route route) {
    const GetTuning first = route.get;
    std::vector<SettingsTrial> tried =
        search_settings(first, std::ranges::max(o_.widths), [&](const GetTuning& settings) {
          route.get = settings;
          return measure(partition, route);
        });
    route.get = first;
    take(route, tried.front());
    std::vector<std::size_t> fastest = fastest_settings(tried);
    take_each_once(fastest);
    for (const std::size_t one : fastest) {
      if (one == 0) continue;
      route.get = tried[one].settings;
      take(route, tried[one]);
    }
    result_.settings.push_back({route.partition, std::move(tried)});
  }

  // Notes the times of a way, or why it has none.
  void take(const Route& route, const SettingsTrial& found) {
    refusal_ = found.ms.empty() ? found.left_out : refusal_;
    for (std::size_t w = 0; w < found.ms.size(); ++w) {
      result_.measured.push_back({.kind = {.widths = {o_.widths[w]}, .transport = route.transport},
                                  .partition = route.partition,
                                  .way = {route.strategy, 0, route.get},
                                  .ms = found.ms[w]});
      if (world_.rank() == 0)
        result_.predicted_ms.push_back(
            predictor_->milliseconds(route, result_.counts.at(route.partition), o_.widths[w]));
    }
  }

  // Times a way at all widths, or says why it does not fit.
  SettingsTrial measure(const Partition& partition, const Route& route) {
    const ExchangeOptions options{.route = route, .shards = {.transposed = false}};
    SettingsTrial found{route.get, {}, {}};
    try {
      require_run_fits(world_, dataset_.graph, dataset_.symmetric, partition,
                       {.route = route, .shards = options.shards, .widths = o_.widths},
                       "the aggregation");
      std::optional<Timed> placing("place graph");
      std::unique_ptr<Aggregator> on_cpu;
      std::unique_ptr<GpuAggregator> on_gpu;
      if (route.gpu)
        on_gpu =
            make_gpu_aggregator(world_, dataset_.graph, dataset_.symmetric, partition, options);
      else
        on_cpu = make_aggregator(world_, dataset_.graph, dataset_.symmetric, partition, options);
      placing.reset();
      for (const std::uint64_t width : o_.widths) {
        std::unique_ptr<AggregateBench> bench;
        if (route.gpu)
          bench = std::make_unique<GpuBench>(world_, dataset_.graph, partition, *on_gpu, width);
        else
          bench = make_cpu_bench(world_, dataset_.graph, partition, *on_cpu, width);
        const double error = timed("check", [&] { return bench->check(); });
        require<MismatchError>(error < 1e-5, "{} with {} at width {} is wrong by {} relative",
                               to_string(route.partition), to_string(route.strategy), width, error);
        const Times steps = timed("steps", [&] {
          const ProfilePause
              pause;  // the times are kept, and on GPUs phases would make them longer
          return bench->time_steps(o_.effort);
        });
        found.ms.push_back(steps.median());
      }
    } catch (const DoesNotFitError& error) {  // on all ranks
      found.ms.clear();
      found.left_out = error.what();
    }
    return found;
  }

  json to_json() const {
    return {{"graph", dataset_.name},
            {"ranks", world_.size()},
            {"device", device_name(session_)},
            {"rows", rows_to_json(result_)},
            {"settings", settings_to_json(result_)},
            {"chosen", chosen_to_json(result_)},
            {"plot", o_.plot.empty() ? json(nullptr) : json(o_.plot)},
            {"kept", folder_.empty() ? json(nullptr) : json(measured_routes_path(folder_, key_))}};
  }

  void print_text() const {
    print_times(result_);
    if (!o_.plot.empty()) fmt::print("heat map in {}\n", printable(o_.plot));
    if (o_.dry) return;
    if (folder_.empty()) return fmt::print("not kept, as PLAIT_ROUTES is empty\n");
    fmt::print("kept in {}; runs on this graph and {} choose by it\n",
               printable(measured_routes_path(folder_, key_)), ranks_of(world_, session_));
  }

  const Options& o_;
  World& world_;
  const Session& session_;
  const Dataset dataset_;
  const MeasuredKey key_;
  const std::string folder_;  // empty: times are not kept
  TuneResult result_;
  std::optional<RoutePredictor> predictor_;  // on rank 0
  std::string refusal_;                      // of the last way that did not fit
};

}  // namespace

void add_tune(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, session, "tune",
      "Measure which strategy and partition are fastest on a graph, for later runs", [=, &session] {
        partitions_of(*o);
        take_each_once(o->widths);
        take_each_once(o->partitions);
        o->standard.gpu = session.gpus > 0;
        o->standard = resolved(o->standard);
        require<UsageError>(
            std::max(session.ranks, session.gpus) > 1 || valid_world_from_environment(),
            "one rank moves no rows; add --ranks or --gpus");
        on_ranks(session, [&](World& world) { Tuning(*o, world, session).run(); });
      });
  command->add_option("graph", o->graph, "Graph file")->required();
  add_reading_options(command, session);
  add_list(command, "--widths,--dims", o->widths, "Widths of x (features per row), with commas")
      ->check(in_range(1, 1 << 20));
  show_words(add_list(command, "--partitions", o->partitions, "Schemes to measure, with commas"),
             words_of(PartitionScheme{}));
  command->add_option("--repetitions", o->effort.repetitions, "Repetitions of each measurement")
      ->check(in_range(1, 10000))
      ->capture_default_str();
  command->add_flag("--settings", o->settings,
                    "Also search for the fastest settings of strategy get: --ps, --dist, --wpb and "
                    "--dw are doubled or halved, one after the other, as long as that makes steps "
                    "faster. Later runs take them if they name no setting");
  command->add_flag("--dry-run", o->dry, "Print the times without keeping them");
  as_output(session, command->add_option("--plot", o->plot,
                                         "Heat map of the times to write (SVG): one row per "
                                         "partition and strategy, one column per width"));
  add_rank_options(command, session, o->standard.transport);
  command->add_option("--seed", session.seed, "Seed of the partition (metis)")
      ->capture_default_str();
  add_timeout_options(command, session);
  add_profile_options(command, session);
  group_options(
      command,
      {{"Measurement",
        {"--widths", "--partitions", "--settings", "--repetitions", "--dry-run", "--plot"}},
       {"GPUs and ranks", {"--seed"}}});
  add_examples(command,
               "  plait tune products.plait --gpus 4\n"
               "  plait tune products.plait --gpus 4 --widths 3,16,64,256 --plot times.svg\n"
               "  plait tune products.plait --gpus 4 --settings --partitions edges\n"
               "  plait train products.plait --gpus 4 --explain  # chooses by what was measured");
}

}  // namespace plait::cli
