#include "plait/aggregate/route_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "plait/aggregate/shared_partition.h"
#include "plait/base/gpu.h"
#include "plait/base/memory.h"
#include "plait/base/profile.h"
#include "plait/io/fingerprint.h"
#include "plait/partition/quality.h"
#include "plait/symmetric/agreement.h"

namespace plait {
namespace {

// Collective if these are the ranks of the world. Returns the bytes that are free on each rank's
// GPU; nothing if they are not known.
std::vector<std::uint64_t> free_of_ranks(World& world, int ranks) {
  if (ranks != world.size()) return free_on_gpus(ranks);
  constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
  auto free = gather_found(world, [] { return gpu_count() > 0 ? gpu_free_memory() : kUnknown; });
  if (std::ranges::max(free) == kUnknown) free.clear();
  return free;
}

// Makes each partition once.
Partition& made_partition(GraphRun& run, PartitionScheme scheme) {
  const auto made = run.partitions.find(scheme);
  if (made != run.partitions.end()) return made->second;
  const Timed timed("partition");
  Partition partition = make_partition(scheme, run.dataset(), run.question.ranks, run.seed);
  return run.partitions.emplace(scheme, std::move(partition)).first->second;
}

// Reads what was kept of the run's graph. `here`: the run's ranks on this host.
MeasuredRoutes kept_routes(const GraphRun& run, int here) {
  const RouteQuestion& q = run.question;
  const std::string folder = measured_routes_folder();
  std::error_code none;
  if (q.ranks == 1 || !has_open_part(q) || !std::filesystem::exists(folder, none))
    return {};  // the key, which looks at all edges, need not be computed
  return read_measured_routes(folder, measured_key(run.dataset(), q.route.gpu, q.ranks, here));
}

// Chooses on this rank. `free`: bytes of each rank's GPU; nothing if they are not known.
Choice choose_here(GraphRun& run, int here, const std::vector<std::uint64_t>& free) {
  const bool gpu = run.question.route.gpu;
  std::map<PartitionScheme, PartitionQuality> counted;
  const auto counts = [&](PartitionScheme scheme) {
    const Partition& partition = made_partition(run, scheme);
    const Timed timed("predict");
    if (!counted.contains(scheme))
      counted.emplace(scheme, measure_partition(run.dataset().graph, partition));
    return &counted.at(scheme);
  };
  const auto fits = [&](const Route& route) {
    if (gpu && free.empty()) return true;
    const MemoryPlan plan = run.plan(made_partition(run, route.partition), route);
    if (gpu) return fits_on_gpus(plan, free);
    std::uint64_t of_host = 0;
    for (int rank = 0; rank < here; ++rank) of_host += plan.rank_total(rank);
    return of_host <= available_memory();
  };
  return choose(run.question, kept_routes(run, here), counts, fits,
                gpu ? machine() : MachineProfile{});
}

// Collective. Returns rank 0's choice on all ranks.
Choice from_first(World& world, Choice choice) {
  together(world, "while ranks shared a choice", [&] {
    struct Plain {
      Route route;
      int passes;
      bool measured;
    } plain{choice.route, choice.passes, choice.measured};
    share_first(world, plain);
    choice.route = plain.route, choice.passes = plain.passes, choice.measured = plain.measured;
    share_first_list(world, choice.trials);
    share_first_list(world, choice.alternatives);
    share_first_list(world, choice.note);
    share_first_list(world, choice.untried);
    std::string reasons = fmt::format("{}", fmt::join(choice.reasons, "\n"));
    share_first_list(world, reasons);
    choice.reasons.clear();
    std::istringstream lines(reasons);
    for (std::string line; std::getline(lines, line);) choice.reasons.push_back(line);
  });
  return choice;
}

}  // namespace

Choice choose(World& world, GraphRun& run) {
  const RouteQuestion& q = run.question;
  const int here =
      q.ranks == world.size() ? static_cast<int>(world.ranks_of_host().size()) : q.ranks;
  std::vector<std::uint64_t> free;
  const bool compares = q.open_strategy || (has_open_part(q) && q.route.gets_on_gpus());
  if (q.ranks > 1 && compares && q.route.gpu) free = free_of_ranks(world, q.ranks);
  Choice choice;
  on_all_or_none(world, [&] {
    if (world.rank() == 0) choice = choose_here(run, here, free);
  });
  return from_first(world, std::move(choice));
}

Partition chosen_partition(World& world, GraphRun& run, PartitionScheme scheme) {
  const bool of_world = run.question.ranks == world.size();
  std::optional<Partition> made;
  if (!of_world || run.partitions.contains(scheme)) made = std::move(made_partition(run, scheme));
  run.partitions.clear();
  if (!of_world) return *std::move(made);
  return shared_partition(world, run.dataset(), scheme, run.seed, std::move(made));
}

MeasuredKey measured_key(const Dataset& dataset, bool gpu, int ranks, int here) {
  return {.graph = graph_checksum(dataset),
          .device = !gpu ? fmt::format("cpu, {} processors", std::thread::hardware_concurrency())
                    : gpu_count() > 0 ? current_gpu_name()
                                      : "GPU",
          .ranks = ranks,
          .here = here};
}

std::vector<std::uint64_t> free_on_gpus(int ranks) {
  std::vector<std::uint64_t> free;
  if (gpu_count() < ranks) return free;
  for (const Gpu& gpu : list_gpus()) free.push_back(gpu.free);
  free.resize(static_cast<std::size_t>(ranks));
  return free;
}

}  // namespace plait
