// plait plan GRAPH: bytes a rank for each array, before anything is allocated.
#include <fmt/core.h>

#include <algorithm>

#include "cli/cli.h"
#include "plait/aggregate/aggregate.h"
#include "plait/base/memory.h"
#include "plait/plan/memory_plan.h"

namespace plait::cli {
namespace {

struct Options {
  std::string graph;
  Spread spread;
  std::uint64_t width = 0;
  bool train = false;
};

MemoryPlan make_plan(const Options& o, const Session& session, const Dataset& dataset) {
  const Partition partition =
      make_partition(o.spread.scheme, dataset.graph, session.ranks, session.seed);
  const Features& f = dataset.features;
  MemoryQuestion question{.width = o.width,
                          .weighted = is_weighted(dataset.graph),
                          .symmetric = dataset.symmetric,
                          .gradient = o.train,
                          .replicate = o.spread.strategy == Strategy::replicate,
                          .wide_ids = std::holds_alternative<Csr64>(dataset.graph),
                          .contiguous = partition.is_contiguous()};
  if (o.train) {
    // Sparse features are held by rows and by columns: a column, a value and half an offset each.
    question.feature_floats = f.is_sparse() ? f.sparse.edges() * 4 : f.rows * f.width;
    const auto classes = static_cast<std::uint64_t>(dataset.classes);
    question.activations = 2 * (std::min(o.width, std::uint64_t{1} << 62) + classes);
  }
  return plan_memory(measure_partition(dataset.graph, partition), question);
}

void print_text(const MemoryPlan& plan, int ranks, std::uint64_t available) {
  fmt::print("{:<42}", "bytes a rank");
  for (int rank = 0; rank < ranks; ++rank) fmt::print("{:>12}", fmt::format("rank {}", rank));
  fmt::print("\n");
  for (const MemoryItem& item : plan.items) {
    fmt::print("{:<42}", item.name);
    for (const std::uint64_t bytes : item.bytes) fmt::print("{:>12}", format_bytes(bytes));
    fmt::print("\n");
  }
  fmt::print("{:<42}", "total");
  for (int rank = 0; rank < ranks; ++rank)
    fmt::print("{:>12}", format_bytes(plan.rank_total(rank)));
  fmt::print("\nall ranks {}, free on this machine {}\n", format_bytes(plan.total()),
             format_bytes(available));
}

void run(const Options& o, const Session& session) {
  const Dataset dataset = read_graph(o.graph, session);
  const MemoryPlan plan = make_plan(o, session, dataset);
  const std::uint64_t available = available_memory();
  if (session.json) {
    json items = json::array();
    for (const MemoryItem& item : plan.items)
      items.push_back({{"name", item.name}, {"bytes", item.bytes}});
    print_json({{"graph", dataset.name},
                {"ranks", session.ranks},
                {"width", o.width},
                {"arrays", items},
                {"largest_rank", plan.largest_rank()},
                {"total", plan.total()},
                {"available", available},
                {"fits", plan.total() <= available}});
  } else {
    print_text(plan, session.ranks, available);
  }
  require_fit(plan, available);
}

}  // namespace

void add_plan(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(app, session, "plan",
                                  "Show the memory that a run would take, a rank and an array",
                                  [=, &session] { run(*o, session); });
  command->add_option("graph", o->graph, "Graph file")->required();
  command->add_option("--dim", o->width, "Features a row that are aggregated")->required();
  add_spread_options(command, session, o->spread);
  command->add_flag("--train", o->train, "With features, activations and the transposed graph");
  add_examples(command,
               "  plait plan products.plait --ranks 4 --dim 128\n"
               "Exit code 4 if it does not fit on this machine.");
}

}  // namespace plait::cli
