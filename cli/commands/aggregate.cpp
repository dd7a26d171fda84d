// plait aggregate GRAPH: computes y = A x, without a model.
#include "plait/aggregate/aggregate.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "cli/options/get_options.h"
#include "cli/ranks.h"
#include "plait/aggregate/rows_in_order.h"
#include "plait/aggregate/run_memory.h"
#include "plait/base/checksum.h"
#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/printable.h"
#include "plait/base/profile.h"
#include "plait/base/saturating.h"
#include "plait/base/timer.h"
#include "plait/io/npy.h"
#include "plait/plan/route.h"
#include "plait/world/difference.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

struct Options {
  std::string graph, features, out, op = "sum";
  Route route;
  bool transposed = false;
};

bool is_extremum(const Options& o) { return o.op == "max" || o.op == "min"; }

// Throws UsageError.
void check_operation(const Options& o) {
  constexpr std::array kOperations{"sum", "mean", "weighted", "max", "min"};
  require<UsageError>(std::ranges::find(kOperations, o.op) != kOperations.end(),
                      "operation '{}' is unknown; use sum, mean, weighted, max or min", o.op);
  require<UsageError>(!o.transposed || !is_extremum(o),
                      "the gradient of {} depends on the rows that it was taken of: --transposed "
                      "goes with sum, mean and weighted",
                      o.op);
  if (is_extremum(o)) require_rows(o.route);
}

// A rank's rows of a matrix.
class RowBlock {
 public:
  RowBlock(const Partition& partition, int rank, std::uint64_t width)
      : partition_(partition), rank_(rank), width_(width), rows_(partition.size(rank) * width) {}

  float* data() { return rows_.data(); }
  std::span<const float> values() const { return rows_.span(); }
  void take(const float* all) {
    for (std::uint64_t r = 0; r < partition_.size(rank_); ++r)
      std::copy_n(all + partition_.number(rank_, r) * width_, width_, data() + r * width_);
  }

 private:
  const Partition& partition_;
  int rank_;
  std::uint64_t width_;
  Buffer<float> rows_;
};

void write_rows(const std::string& path, std::uint64_t rows, std::uint64_t width,
                std::span<const float> all) {
  const Timed timed("write");
  AtomicFile file(path);
  write_npy<float>(file, std::array{rows, width}, all);
  file.commit();
}

// Memory of own rows of y, and of the y of all ranks on rank 0.
std::vector<std::uint64_t> gathering(const Partition& partition, std::uint64_t width) {
  std::vector<std::uint64_t> bytes;
  for (int rank = 0; rank < partition.parts(); ++rank) {
    const Bytes rows = Bytes(partition.size(rank)) +
                       (rank == 0 ? copies_in_order(partition) * partition.vertices() : 0);
    bytes.push_back((rows * width * sizeof(float)).value);
  }
  return bytes;
}

RunMemory memory_of(const Options& o, const Partition& partition, std::uint64_t width) {
  std::vector<EdgeOperation> operations;
  if (is_extremum(o)) operations = {ExtremumForward{.edges = {}, .width = width}};
  return {.route = o.route,
          .shards = {.transposed = o.transposed},
          .widths = {width},
          .operations = std::move(operations),
          .rows_per_sum = is_extremum(o) ? kExtremumRecord : 1,
          .afterwards = gathering(partition, width)};
}

std::unique_ptr<Aggregator> make(const Options& o, World& world, const Dataset& dataset,
                                 const Partition& partition, std::uint64_t width) {
  const RunMemory memory = memory_of(o, partition, width);
  require_run_fits(world, dataset.graph, dataset.symmetric, partition, memory, "the aggregation");
  return make_aggregator_for_host_arrays(
      world, dataset.graph, dataset.symmetric, partition,
      {.route = o.route, .shards = memory.shards, .max_width = width});
}

// Returns the same matrix on every rank.
NpyMatrix read_features(const std::string& path, World& world) {
  NpyMatrix x = timed("read features", [&] { return read_npy_matrix(path); });
  if (world.size() == 1) return x;
  const Phase phase("comparing the ranks' features", "compare features");
  const auto bytes = std::as_bytes(x.values.span());
  require_equal(world, "ranks read different features",
                {{"the number of rows", fmt::to_string(x.rows)},
                 {"the width", fmt::to_string(x.width)},
                 {"the checksum", checksum_text(checksum_of(bytes))}});
  return x;
}

void run(Options o, const Session& session, World& world) {
  require_wire_used(o.route, world.size());
  const Dataset dataset = read_graph(world, o.graph, session);
  require<UsageError>(o.op != "weighted" || is_weighted(dataset.graph) || dataset.edges() == 0,
                      "{} has no edge weights; use --op sum", o.graph);
  const NpyMatrix x = read_features(o.features, world);
  require(x.rows == dataset.vertices(), "{}: {} rows, but {} has {} vertices", o.features, x.rows,
          o.graph, dataset.vertices());
  const auto plan = [&](const Partition& partition, const Route& route) {
    Options by_route = o;
    by_route.route = route;
    return plan_run(dataset.graph, dataset.symmetric, partition,
                    memory_of(by_route, partition, x.width));
  };
  GraphRun graph_run{.dataset = [&]() -> const Dataset& { return dataset; },
                     .question = {.route = o.route,
                                  .ranks = world.size(),
                                  .widths = {x.width},
                                  .rows = is_extremum(o)},
                     .plan = plan};
  const Layout layout = decided_layout(world, session, graph_run);
  o.route = layout.choice.route;
  const Partition& partition = layout.partition;
  std::unique_ptr<Aggregator> aggregator;
  {
    const Phase phase("placing the graph", "place graph");
    aggregator = make(o, world, dataset, partition, x.width);
  }

  std::vector<float> post;
  if (o.op == "mean")
    for (const float count : aggregator->edge_counts()) post.push_back(count > 0 ? 1 / count : 0);
  RowBlock out(partition, world.rank(), x.width);
  std::optional<RowBlock> own_x(std::in_place, partition, world.rank(), x.width);
  RowBlock& in = *own_x;
  in.take(x.values.data());
  const Scaling scaling{nullptr, post.empty() ? nullptr : post.data(), o.op == "weighted"};
  const Stopwatch watch;
  if (is_extremum(o))
    aggregator->over_edges(
        in.data(), ExtremumForward{.edges = {},
                                   .width = x.width,
                                   .y = out.data(),
                                   .which = o.op == "min" ? Extremum::least : Extremum::greatest});
  else if (o.transposed)
    aggregator->backward(scaling, in.data(), out.data(), x.width);
  else
    aggregator->forward(scaling, in.data(), out.data(), x.width);
  const double seconds = watch.seconds();

  const std::uint64_t fetched = aggregator->cost().bytes_fetched;
  aggregator.reset(), own_x.reset();  // their memory is free for the rows of all ranks
  const Buffer<float> all = rows_in_order(world, partition, out.values(), x.width);
  if (world.rank() != 0) return;
  write_rows(o.out, partition.vertices(), x.width, all.span());
  if (session.json) {
    json result = {{"out", o.out},
                   {"rows", x.rows},
                   {"width", x.width},
                   {"ranks", world.size()},
                   {"device", session.gpus > 0 ? "cuda" : "cpu"},
                   {"strategy", to_string(o.route.strategy)},
                   {"partition", to_string(o.route.partition)},
                   {"wire", to_string(o.route.wire)},
                   {"exact", o.route.exact},
                   {"op", o.op},
                   {"milliseconds", seconds * 1e3},
                   {"bytes_fetched", fetched}};
    if (o.route.gets_on_gpus()) result["get"] = to_json(o.route.get);
    print_json(result);
    return;
  }
  fmt::print("{}: {} x {}, {} by {} on {}{} in {:.2f} ms\n", printable(o.out), x.rows, x.width,
             o.op, to_string(o.route.strategy), ranks_of(world, session), on_the_wire(o.route),
             seconds * 1e3);
}

}  // namespace

void add_aggregate(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, session, "aggregate",
      "Compute y = A x: the sum, mean, weighted sum, maximum or minimum over neighbours",
      [=, &session] {
        check_operation(*o);
        on_ranks(session, [&](World& world) { run(*o, session, world); });
      });
  command->add_option("graph", o->graph, "Graph file")->required();
  add_reading_options(command, session);
  command->add_option("--features", o->features, "File of x: .npy, vertices x width, float")
      ->required();
  as_output(session, command->add_option("--out", o->out, "File of y to write: .npy"))->required();
  show_words(command->add_option("--op", o->op, "Operation over neighbours")->capture_default_str(),
             "sum, mean, weighted, max, min");
  command->add_flag("--transposed", o->transposed, "Compute the gradient, A^T times the features");
  command->add_option("--seed", session.seed, "Seed of the partition (metis)")
      ->capture_default_str();
  add_route_options(command, session, o->route);
  add_explain_option(command, session);
  add_timeout_options(command, session);
  add_profile_options(command, session);
  group_options(command, {{"Files", {"--features", "--out"}},
                          {"Operation", {"--op", "--transposed"}},
                          {"GPUs and ranks", {"--seed"}}});
  add_examples(command,
               "  plait aggregate cora.plait --features X.npy --out Y.npy --op mean --ranks 2\n"
               "  plait aggregate products.plait --features X.npy --out Y.npy --gpus 4");
}

}  // namespace plait::cli
