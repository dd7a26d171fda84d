// Chooses the parts of a route that the user left open, by the times that plait tune measured or by
// predicted ones (plan/decide.h).
#include <fmt/core.h>

#include <array>
#include <filesystem>
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
                  .rows = moved.rows} {}

  // Returns the route that plait tune's times choose. If that leaves the strategy to predictions,
  // by_prediction() is to follow.
  Route by_measurement(int ranks, int here) {
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
    predicts_ = decision.alternatives.empty() && question_.open_strategy && question_.route.gpu;
    if (!open)
      explain(name_of(decision.route) + ": as asked for");
    else if (!decision.alternatives.empty())
      explain(decision, "by the times that plait tune measured");
    else if (!predicts_)
      explain(name_of(decision.route) + ": nothing was measured for this graph; see plait tune");
    return decision.route;
  }
  bool predicts() const { return predicts_; }

  // Returns the strategy that predicted times on this partition choose. `free`: bytes of each
  // rank's GPU; nothing if they are not known.
  Strategy by_prediction(const Partition& partition, const std::vector<std::uint64_t>& free) {
    const Timed timed("predict");
    bool too_large = false;
    const auto fits = [&](const Route& route) {
      too_large = !free.empty() && !fits_on_gpus(plan_(partition, route), free);
      if (too_large) explain(name_of(route) + ": does not fit in the memory of the GPUs");
      return !too_large;
    };
    const Decision decision =
        predict_best(question_, measure_partition(dataset_.graph, partition), fits);
    explain(decision, too_large ? "takes less memory; predicted times"
                                : "by predicted times, as plait tune has measured no way that "
                                  "this run can go");
    return decision.route.strategy;
  }

 private:
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
  bool predicts_ = false;
};

}  // namespace

Layout decided_layout(const Dataset& dataset, const Session& session, int ranks, const Route& route,
                      const Moved& moved, std::uint64_t seed) {
  Choice choice(dataset, session, route, moved);
  Route decided = choice.by_measurement(ranks, ranks);
  Partition partition =
      timed("partition", [&] { return make_partition(decided.partition, dataset, ranks, seed); });
  if (choice.predicts()) decided.strategy = choice.by_prediction(partition, free_on_gpus(ranks));
  return {decided, std::move(partition)};
}

Layout decided_layout(World& world, const Dataset& dataset, const Session& session,
                      const Route& route, const Moved& moved, std::uint64_t seed) {
  Choice choice(dataset, session, route, moved);
  // Strategy, partition, and whether the strategy is to be predicted: as rank 0 decides.
  std::array<std::uint8_t, 3> found{};
  const auto first_decides = [&](const auto& decision) {
    on_all_or_none(world, [&] {
      if (world.rank() == 0) decision();
    });
    world.broadcast(std::as_writable_bytes(std::span(found)), 0);
  };
  first_decides([&] {
    const auto here = static_cast<int>(world.ranks_of_host().size());
    const Route by = choice.by_measurement(world.size(), here);
    found = {static_cast<std::uint8_t>(by.strategy), static_cast<std::uint8_t>(by.partition),
             choice.predicts()};
  });
  Route decided = route;
  decided.partition = static_cast<PartitionScheme>(found[1]);
  Partition partition = partition_for(world, dataset, decided.partition, seed);
  if (found[2] != 0) {
    const std::vector<std::uint64_t> free = gather_values(world, gpu_free_memory());
    first_decides(
        [&] { found[0] = static_cast<std::uint8_t>(choice.by_prediction(partition, free)); });
  }
  decided.strategy = static_cast<Strategy>(found[0]);
  return {decided, std::move(partition)};
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
          "plait tune measured on this graph, if it did");
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
          .plan = [config, &dataset](const Partition& partition, const Route& route) {
            TrainConfig by_route = config;
            by_route.route = route;
            return plan_training(dataset, partition, by_route);
          }};
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
