// plait bench zoo: times y = A x on graphs of many shapes, beside the strategies that could have
// been chosen instead and cuSPARSE.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cli/commands/contestant.h"
#include "cli/ranks.h"
#include "plait/aggregate/shared_partition.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/graph/build.h"
#include "plait/graph/validate.h"
#include "plait/graph/zoo.h"
#include "plait/plan/choose.h"
#include "plait/plan/route.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

constexpr double kLeastRatio = 0.95;  // the goal

struct Options {
  std::vector<std::string> graphs;
  std::vector<std::uint64_t> widths{16, 64, 128};
  double scale = 1;
  BenchSettings settings;
};

// One graph at one width.
struct Row {
  const ZooGraph* graph;
  std::uint64_t vertices = 0, edges = 0, width = 0;
  Strategy strategy;                                  // that is chosen by itself
  Times times;                                        // of this strategy
  std::vector<std::pair<std::string, Times>> rivals;  // those whose memory fits

  // The rival with the least median. There is one.
  const std::pair<std::string, Times>& best() const {
    return *std::ranges::min_element(rivals, {},
                                     [](const auto& rival) { return rival.second.median(); });
  }
  double ratio() const { return best().second.median() / times.median(); }
};

class Zoo {
 public:
  Zoo(const Options& o, World& world, const Session& session)
      : o_(o), world_(world), session_(session) {}

  void run() {
    if (world_.rank() == 0 && !session_.json)
      fmt::print("{:<14} {:>5} {:>10} {:>10} {:<9} {:>7}\n", "graph", "width", "ms", "best rival",
                 "", "ratio");
    for (const ZooGraph& graph : zoo())
      if (o_.graphs.empty() || std::ranges::count(o_.graphs, graph.name) > 0) measure(graph);
    if (world_.rank() != 0) return;
    session_.json ? print_json(to_json()) : print_summary();
  }

 private:
  void measure(const ZooGraph& zoo_graph) {
    Dataset dataset{.name = std::string(zoo_graph.name),
                    .graph = build_csr(make(zoo_graph, o_.scale))};
    dataset.symmetric = is_symmetric(dataset.graph);
    const Partition partition =
        shared_partition(world_, dataset, o_.settings.scheme, session_.seed);
    const Strategy strategy = chosen(dataset, partition);
    std::vector<Row> rows;
    for (const std::uint64_t width : o_.widths)
      rows.push_back({.graph = &zoo_graph,
                      .vertices = dataset.vertices(),
                      .edges = dataset.edges(),
                      .width = width,
                      .strategy = strategy});
    std::vector<std::string> names{"auto", "cusparse"};
    if (world_.size() > 1) names.insert(names.end(), {"bulk", "partial"});
    for (const std::string& name : names) {
      const Phase phase(fmt::format("measuring {} on {}", name, zoo_graph.name));
      try {
        measure(name, dataset, partition, rows);
      } catch (const DoesNotFitError&) {
        if (name == "auto" || name == "cusparse") throw;
      }
    }
    for (const Row& row : rows) {
      if (world_.rank() == 0 && !session_.json) print(row);
      rows_.push_back(row);
    }
  }

  // Returns the strategy that a run takes by itself, the same on all ranks.
  Strategy chosen(const Dataset& dataset, const Partition& partition) const {
    const RouteQuestion question{.route = resolved({.gpu = true}),
                                 .open_strategy = true,
                                 .ranks = world_.size(),
                                 .widths = o_.widths};
    PartitionQuality quality;
    const auto counts = [&](PartitionScheme) {
      quality = measure_partition(dataset.graph, partition);
      return &quality;
    };
    return choose(question, {}, counts, [](const Route&) { return true; }).route.strategy;
  }

  void measure(const std::string& name, const Dataset& dataset, const Partition& partition,
               std::vector<Row>& rows) {
    const std::string way = name == "auto" ? std::string(to_string(rows.front().strategy)) : name;
    const auto aggregator = make_gpu_aggregator(world_, dataset.graph, dataset.symmetric, partition,
                                                contestant(way, DType::f32, o_.settings.transport));
    for (Row& row : rows) {
      GpuBench bench(world_, dataset.graph, partition, *aggregator, row.width);
      const double error = bench.check();
      require<MismatchError>(error < 1e-5, "{} at width {} of {} is wrong by {} relative", name,
                             row.width, row.graph->name, error);
      Times times = bench.time_steps(o_.settings.effort);
      if (name == "auto")
        row.times = std::move(times);
      else
        row.rivals.emplace_back(name, std::move(times));
    }
  }

  static void print(const Row& row) {
    const auto& [name, times] = row.best();
    fmt::print("{:<14} {:>5} {:>10.4f} {:>10.4f} {:<9} {:>7.2f}\n", row.graph->name, row.width,
               row.times.median(), times.median(), name, row.ratio());
    std::fflush(stdout);
  }

  double geometric_mean() const {
    double logs = 0;
    for (const Row& row : rows_) logs += std::log(row.ratio());
    return std::exp(logs / static_cast<double>(rows_.size()));
  }
  double least() const { return std::ranges::min_element(rows_, {}, &Row::ratio)->ratio(); }
  std::size_t below() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(rows_, [](const Row& row) { return row.ratio() < kLeastRatio; }));
  }

  void print_summary() const {
    fmt::print("{} on {}: geometric mean {:.2f}, least {:.2f}; {} below {}\n",
               counted(rows_.size(), "ratio"), ranks_of(world_, session_), geometric_mean(),
               least(), below(), kLeastRatio);
  }

  json to_json() const {
    json rows = json::array();
    for (const Row& row : rows_) {
      const auto& [name, times] = row.best();
      rows.push_back({{"graph", row.graph->name},
                      {"shape", row.graph->shape},
                      {"vertices", row.vertices},
                      {"edges", row.edges},
                      {"width", row.width},
                      {"strategy", to_string(row.strategy)},
                      {"median_ms", row.times.median()},
                      {"least_ms", row.times.least()},
                      {"most_ms", row.times.most()},
                      {"rival", name},
                      {"rival_median_ms", times.median()},
                      {"rival_least_ms", times.least()},
                      {"rival_most_ms", times.most()},
                      {"ratio", row.ratio()}});
    }
    return {{"gpus", world_.size()},  {"scale", o_.scale}, {"geometric_mean", geometric_mean()},
            {"least_ratio", least()}, {"below", below()},  {"rows", rows}};
  }

  const Options& o_;
  World& world_;
  const Session& session_;
  std::vector<Row> rows_;
};

void check(const Options& o) {
  for (const std::string& name : o.graphs) zoo_graph(name);  // throws for an unknown graph
  require<UsageError>(o.scale > 0 && o.scale <= 1, "--scale {} is outside 0..1", o.scale);
}

}  // namespace

void add_bench_zoo(CLI::App& bench, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(
      bench, session, "zoo",
      "Time y = A x on GPUs on graphs of many shapes, beside other strategies", [=, &session] {
        check(*o);
        take_each_once(o->widths);
        session.gpus = std::max(session.gpus, 1);
        on_ranks(session, [&](World& world) { Zoo(*o, world, session).run(); });
      });
  std::string names;
  for (const ZooGraph& graph : zoo())
    names += (names.empty() ? "" : ", ") + std::string(graph.name);
  show_words(command->add_option("graphs", o->graphs, "Graphs to make; all without any"), names);
  add_list(command, "--widths", o->widths, "Widths of x (features per row), with commas");
  command->add_option("--scale", o->scale, "Factor of the vertices of large graphs")
      ->check(in_range(1e-6, 1.0))
      ->capture_default_str();
  add_bench_settings(command, session, o->settings);
  group_options(command, {{"Measurement", {"--widths", "--scale", "--repetitions"}},
                          {"GPUs and ranks", {"--seed"}}});
  add_examples(command,
               "  plait bench zoo --gpus 4\n"
               "  plait bench zoo star crawl --widths 1,47,300 --json");
}

}  // namespace plait::cli
