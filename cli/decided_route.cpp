// Chooses the parts of a route that the user left open, by the times that plait tune measured
// (plan/decide.h).
#include <fmt/core.h>

#include <array>
#include <filesystem>
#include <span>
#include <thread>

#include "cli/ranks.h"
#include "plait/base/gpu.h"
#include "plait/io/fingerprint.h"
#include "plait/nn/model.h"
#include "plait/plan/decide.h"

namespace plait::cli {
namespace {

std::string name_of(Strategy strategy, PartitionScheme partition) {
  return fmt::format("strategy {}, partition {}", to_string(strategy), to_string(partition));
}

void say(const std::string& text) { fmt::print(stderr, "plait: {}\n", text); }

void explain(const Decision& decision, const std::string& note, const Session& session) {
  if (!note.empty()) say(note);
  const std::string name = name_of(decision.route.strategy, decision.route.partition);
  if (!session.open_strategy && !session.open_partition)
    return say(fmt::format("{}: as asked for", name));
  if (decision.alternatives.empty())
    return say(fmt::format("{}: nothing was measured for this graph; see plait tune", name));
  say(fmt::format("{}: by the times that plait tune measured, for the widths of this run:", name));
  for (const Alternative& a : decision.alternatives)
    say(fmt::format("  {:<40}{:>12.3f} ms", name_of(a.strategy, a.partition), a.ms));
}

}  // namespace

Route decided_route(const Dataset& dataset, const Session& session, int ranks, int here,
                    const Route& route, const Moved& moved) {
  if (ranks == 1) {
    if (session.explain) say("one rank: nothing moves between ranks");
    return route;
  }
  const bool open = session.open_strategy || session.open_partition;
  const std::string folder = measured_routes_folder();
  std::error_code none;
  MeasuredRoutes found;
  if (open && std::filesystem::exists(folder, none))  // else the key need not be computed
    found = read_measured_routes(folder, measured_key(dataset, session, ranks, here));
  const Decision decision = decide({.route = route,
                                    .open_strategy = session.open_strategy,
                                    .open_partition = session.open_partition,
                                    .widths = moved.widths,
                                    .rows = moved.rows},
                                   found.routes);
  if (session.explain)
    explain(decision, found.note, session);
  else if (!found.note.empty() && !session.quiet)
    say("warning: " + found.note);
  return decision.route;
}

void add_explain_option(CLI::App* command, Session& session) {
  command->add_flag("--explain", session.explain,
                    "Say on stderr which strategy and partition were chosen, and why");
  command->get_option("--strategy")
      ->description(
          "Strategy that moves remote rows to where they are summed; auto: the fastest "
          "that plait tune measured on this graph, else bulk on CPUs, pipelined on GPUs");
  command->get_option("--partition")
      ->description(
          "Scheme that assigns vertices to ranks; without this option, the fastest that "
          "plait tune measured on this graph, if it did");
}

Moved moved_by(const ModelConfig& model, const Dataset& dataset) {
  return {moved_widths_of(model, dataset.features.is_sparse()), moves_rows(model)};
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

Route decided_route(World& world, const Dataset& dataset, const Session& session,
                    const Route& route, const Moved& moved) {
  std::array<std::uint8_t, 2> chosen{};
  if (world.rank() == 0) {
    const auto here = static_cast<int>(world.ranks_of_host().size());
    const Route found = decided_route(dataset, session, world.size(), here, route, moved);
    chosen = {static_cast<std::uint8_t>(found.strategy),
              static_cast<std::uint8_t>(found.partition)};
  }
  world.broadcast(std::as_writable_bytes(std::span(chosen)), 0);
  Route decided = route;
  decided.strategy = static_cast<Strategy>(chosen[0]);
  decided.partition = static_cast<PartitionScheme>(chosen[1]);
  return decided;
}

}  // namespace plait::cli
