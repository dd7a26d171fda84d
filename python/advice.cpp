// The decisions that plait.advise shows and plait.parallelize takes: torch.ops.plait.choose_route,
// layer_plan, check_way and brings_rows.
#include <fmt/format.h>
#include <torch/library.h>

#include <limits>
#include <sstream>
#include <tuple>

#include "plait/aggregate/route_choice.h"
#include "plait/aggregate/run_memory.h"
#include "plait/base/gpu.h"
#include "plait/base/parallel.h"
#include "plait/graph/build.h"
#include "plait/graph/renumber.h"
#include "plait/graph/validate.h"
#include "plait/nn/model.h"
#include "plait/nn/operations/torch_device.h"
#include "plait/plan/route.h"
#include "plait/reorder/reorder.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/launch.h"
#include "python/edge_tensors.h"
#include "python/operations.h"

namespace plait {
namespace {

using torch::Tensor;

// Returns the order of a layer's product and sum, the width that crosses, and whether rows do:
// `sizes` are its inputs, outputs and heads.
std::tuple<std::string, std::int64_t, bool> layer_plan(const std::string& kind,
                                                       const std::vector<std::int64_t>& sizes,
                                                       bool concatenated,
                                                       const std::string& aggregation) {
  return with_python_errors([&]() -> std::tuple<std::string, std::int64_t, bool> {
    require<UsageError>(sizes.size() == 3 && std::ranges::min(sizes) > 0,
                        "a layer has 3 sizes, each above 0");
    ModelConfig config = default_model(kind);
    config.aggregation = aggregation;
    const LayerPlan plan = layer_plan_of(
        config, {.in = sizes[0], .out = sizes[1], .heads = sizes[2], .concatenated = concatenated},
        false);
    return {std::string(to_string(plan.order)), static_cast<std::int64_t>(plan.moved_width),
            plan.moves_rows};
  });
}

constexpr std::uint64_t kSeed = 0;  // of partitions, as in graphs that Python makes
// The number of times that a script is expected to make each sum: forward and backward, in as many
// epochs as plait train takes unless it is told otherwise.
const double kSums = 2.0 * TrainConfig{}.epochs;

// Returns one line per fact of a choice: "route STRATEGY PARTITION", "measured yes" if plait tune
// has measured the times, "way STRATEGY PARTITION MS" by time, and "reason" followed by a sentence.
std::vector<std::string> lines_of(const Choice& choice) {
  std::vector<std::string> lines{fmt::format("route {} {}", to_string(choice.route.strategy),
                                             to_string(choice.route.partition))};
  if (choice.measured) lines.emplace_back("measured yes");
  for (const Alternative& way : choice.alternatives)
    lines.push_back(
        fmt::format("way {} {} {}", to_string(way.way.strategy), to_string(way.partition), way.ms));
  if (!choice.note.empty()) lines.push_back("reason " + choice.note);
  for (const std::string& reason : choice.reasons) lines.push_back("reason " + reason);
  return lines;
}

// Builds the graph that a run will work on.
Dataset dataset_of(const EdgeTensors& edges, ReorderMethod reorder) {
  Dataset dataset;
  dataset.graph = build_csr(edge_list_of(edges));
  dataset.symmetric = is_symmetric(dataset.graph);
  const Reordering found = find_order(reorder, {dataset.graph, dataset.symmetric});
  return found.order.empty() ? std::move(dataset) : renumbered(dataset, found.order.span());
}

// Collective. Returns the lines of lines_of(), as rank 0 chooses. `way`: the names of the strategy
// and the partition, each empty if it is open, of the wire type, and of the order in which the
// graph will be worked on. ranks: a number of ranks on one host, or 0 for those of this world.
std::vector<std::string> choose_route(const Tensor& edge_index, std::int64_t num_nodes,
                                      const OptionalTensor& edge_weight,
                                      const std::vector<std::int64_t>& widths, bool rows,
                                      torch::Device device, std::int64_t ranks,
                                      const std::vector<std::string>& way) {
  return with_python_errors([&] {
    require<UsageError>(way.size() == 4,
                        "a way is a strategy, a partition, a wire type and an order");
    const std::string &strategy = way[0], &partition = way[1];
    require<UsageError>(ranks >= 0 && ranks <= std::numeric_limits<int>::max(),
                        "ranks is {}; use 1 or more", ranks);
    const ThreadCount threads(thread_share());
    const std::lock_guard lock(operation_mutex());
    World& world = current_world();
    const ReorderMethod reorder = parsed("reorder", way[3], parse_reorder_method);
    std::optional<Dataset> built;
    const auto dataset = [&]() -> const Dataset& {
      if (!built) built = dataset_of({edge_index, num_nodes, edge_weight}, reorder);
      return *built;
    };
    GraphRun run{.dataset = dataset, .question = {}, .plan = {}, .seed = kSeed};
    run.plan = [&](const Partition& cut, const Route& route) {
      return plan_run(
          dataset().graph, dataset().symmetric, cut,
          {.route = route, .shards = {.slot_vertices = true}, .widths = run.question.widths});
    };
    RouteQuestion& question = run.question;
    question.route =
        resolved({.strategy = strategy.empty() ? Strategy::automatic : parse_strategy(strategy),
                  .wire = parsed("wire", way[2], parse_wire),
                  .gpu = device.is_cuda()});
    if (!partition.empty())
      question.route.partition = parsed("partition", partition, parse_partition_scheme);
    question.open_strategy = strategy.empty() || parse_strategy(strategy) == Strategy::automatic;
    question.open_partition = partition.empty();
    question.ranks = ranks > 0 ? static_cast<int>(ranks) : world.size();
    question.widths.assign(widths.begin(), widths.end());
    question.rows = rows;
    question.times = kSums;
    const OnGpuOf gpu(gpu_count() > 0 ? device : torch::Device(torch::kCPU));
    if (device.is_cuda() && gpu_count() > 0) take_measured_machine(world);
    return lines_of(choose(world, run));
  });
}

// Throws unless there are a strategy and a wire type of these names that go together on GPUs, where
// all strategies are possible.
void check_way(const std::string& strategy, const std::string& wire) {
  with_python_errors([&] {
    resolved({.strategy = parse_strategy(strategy),
              .wire = parsed("wire", wire, parse_wire),
              .gpu = true});
  });
}

// Tells whether rows themselves come to edges by a strategy, as they are.
bool brings_rows(const std::string& strategy, const std::string& wire, torch::Device device) {
  return with_python_errors([&] {
    const Route route = resolved({.strategy = parse_strategy(strategy),
                                  .wire = parsed("wire", wire, parse_wire),
                                  .gpu = device.is_cuda()});
    return route.placement().brings_rows && route.wire == DType::f32;
  });
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(plait, m) {
  m.def("layer_plan", &layer_plan);
  m.def("choose_route", &choose_route);
  m.def("check_way", &check_way);
  m.def("brings_rows", &brings_rows);
}

}  // namespace plait
