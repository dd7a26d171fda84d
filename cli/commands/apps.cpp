// plait NAME GRAPH: one command per analytics app, made from its row of the table
// (plait/apps/app.h).
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "cli/commands/app_output.h"
#include "cli/options/option_rules.h"
#include "cli/ranks.h"
#include "plait/aggregate/run_memory.h"
#include "plait/aggregate/shared_partition.h"
#include "plait/apps/app.h"
#include "plait/base/error.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/timer.h"
#include "plait/plan/route.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

struct Options {
  std::string graph;
  AnswerOptions answer;
  PartitionScheme partition = PartitionScheme::edges;
  DeviceTransport transport{};
  AppSettings settings;
};

class AppCommand {
 public:
  AppCommand(const App& app, const Options& o, World& world, const Session& session)
      : app_(app),
        o_(o),
        world_(world),
        session_(session),
        dataset_(read_graph(world, o.graph, session)) {
    app.check(dataset_, o.settings);
    partition_ = shared_partition(world, dataset_, o.partition, session.seed);
  }

  void run() {
    require_fits();
    auto graph = in_phase("placing the graph", [&] {
      return std::make_unique<SpreadGraph>(world_, dataset_, *partition_, session_.gpus > 0,
                                           o_.transport);
    });
    auto run = session_.gpus > 0 ? app_.on_gpu(*graph) : app_.on_cpu(*graph);
    in_phase("computing", [&] { time_runs(*run); });
    AppResult result = in_phase("gathering results", [&]() -> AppResult {
      return {.columns = run->columns(app_.columns), .facts = run->facts()};
    });
    run.reset(), graph.reset();  // their memory is free for the results of all ranks
    if (!o_.answer.out.empty() || o_.answer.verify) gather_columns(world_, *partition_, result);
    on_all_or_none(world_, [&] {
      if (world_.rank() != 0) return;
      if (o_.answer.verify) timed("verify", [&] { app_.verify(dataset_, o_.settings, result); });
      if (!o_.answer.out.empty()) timed("write", [&] { write_columns(o_.answer.out, result); });
    });
    if (world_.rank() == 0)
      print_report({.app = app_.name,
                    .dataset = dataset_,
                    .partition = std::string(to_string(o_.partition)),
                    .facts = result.facts,
                    .ms = ms_,
                    .options = o_.answer},
                   world_, session_);
  }

 private:
  // The partition of edges in both directions is no more than both directions placed apart.
  void require_fits() {
    const AppBytes of = bytes_of(app_, o_.settings);
    const bool gpu = session_.gpus > 0;
    const std::uint64_t slots = dataset_.vertices(),
                        threads = gpu ? 0 : static_cast<std::uint64_t>(thread_count());
    std::vector<EdgeOffset> edges;
    for (int rank = 0; rank < world_.size(); ++rank)
      edges.push_back(own_edges(dataset_.graph, *partition_, rank) << !dataset_.symmetric);
    const std::uint64_t all = (of.per_slot + threads * of.per_thread_slot) * slots +
                              (world_.size() > 1 ? of.per_lent_edge * std::ranges::max(edges) : 0);
    std::vector<WorkBytes> work;
    std::vector<std::uint64_t> on_host;
    for (const EdgeOffset own : edges) {
      const std::uint64_t bytes = all + of.per_edge * own;
      work.push_back({.kept = bytes, .most = bytes});
      on_host.push_back(gpu && world_.size() > 1 ? of.per_edge_on_host * own : 0);
    }
    require_run_fits(
        world_, dataset_.graph, dataset_.symmetric, *partition_,
        {.route = resolved(
             {.partition = o_.partition, .transport = o_.transport, .gpu = gpu, .exact = true}),
         .shards = {.transposed = !dataset_.symmetric, .slot_vertices = true},
         .widths = {2},
         .work = std::move(work),
         .beside = std::move(on_host)},
        app_.name);
  }

  void time_runs(AppRun& run) {
    for (int k = 0; k < o_.answer.repetitions; ++k) {
      world_.barrier();
      const Stopwatch watch;
      run.run(o_.settings);
      ms_.push_back(1e3 * watch.seconds());
    }
  }

  const App& app_;
  const Options& o_;
  World& world_;
  const Session& session_;
  const Dataset dataset_;
  std::optional<Partition> partition_;
  std::vector<double> ms_;  // of each run
};

void add_setting(CLI::App* command, const AppOption& option, AppSettings& settings) {
  const std::string name = fmt::format("--{}", option.name);
  std::visit(
      [&](auto& value) {
        using T = std::remove_reference_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          command->add_flag(name, value, option.help);
        } else {
          using Number = std::conditional_t<std::is_same_v<T, double>, double, std::uint64_t>;
          CLI::Option* const added = command->add_option(name, value, option.help)
                                         ->check(in_range(static_cast<Number>(option.least),
                                                          static_cast<Number>(option.most)));
          if constexpr (std::is_same_v<T, Number>) added->capture_default_str();
        }
      },
      settings[option.name]);
}

void add_app(CLI::App& program, Session& session, const App& app) {
  auto o = std::make_shared<Options>(Options{.settings = AppSettings(app.options)});
  CLI::App* command = add_command(program, session, app.name, app.summary, [=, &session, &app] {
    if (!o->answer.out.empty()) check_answer_file(o->answer.out);
    on_ranks(session, [&](World& world) { AppCommand(app, *o, world, session).run(); });
  });
  command->add_option("graph", o->graph, "Graph file")->required();
  add_reading_options(command, session);
  for (const AppOption& option : app.options) add_setting(command, option, o->settings);
  add_answer_options(
      command, session, o->answer,
      {.file = "File for the result of each vertex, by the graph's own numbers: .npy, .csv or .txt",
       .verified = "Compare the result with the graph, or with a slow version on one process; a "
                   "wrong one exits with 3",
       .repeated = "Times that the work is done on the placed graph, for its median time"});
  add_choice(command, "--partition", o->partition, parse_partition_scheme, "edges",
             "Scheme that assigns vertices to ranks");
  add_rank_options(command, session, o->transport);
  command->add_option("--seed", session.seed, "Seed of the partition and of the order (metis)")
      ->capture_default_str();
  add_timeout_options(command, session);
  add_profile_options(command, session);
  std::vector<std::string> asked;
  for (const AppOption& option : app.options) asked.push_back(fmt::format("--{}", option.name));
  asked.insert(asked.end(), kAnswerOptions.begin(), kAnswerOptions.end());
  group_options(command, {{"Question and answer", asked}, {"GPUs and ranks", {"--seed"}}});
  add_examples(command, fmt::format("  plait {0} cora.plait --verify\n"
                                    "  plait {0} products.plait --ranks 2 -o {0}.npy\n"
                                    "  plait {0} products.plait --gpus 4 --json",
                                    app.name));
}

std::vector<OptionRule> app_rules() {
  using namespace needs;
  std::vector<const char*> commands;
  for (const App& app : apps()) commands.push_back(app.name);
  return {{commands, {"--transport", "--gpu-timeout"}, {given("--gpus")}},
          {commands, {"--seed"}, {any_of("--partition", "metis"), any_of("--reorder", "metis")}}};
}

}  // namespace

void add_apps(CLI::App& program, Session& session) {
  add_option_rules(app_rules);
  for (const App& app : apps()) add_app(program, session, app);
}

}  // namespace plait::cli
