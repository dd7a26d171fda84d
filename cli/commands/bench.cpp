// plait bench aggregate GRAPH: times y = A x on GPUs, or on CPU ranks, with several strategies in
// one run.
#include "plait/measure/cuda/bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>

#include "cli/commands/contestant.h"
#include "cli/options/get_options.h"
#include "cli/ranks.h"
#include "plait/aggregate/shared_partition.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/limits.h"
#include "plait/base/timer.h"
#include "plait/partition/quality.h"
#include "plait/plan/route.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

struct Options {
  std::string graph;
  std::vector<std::uint64_t> widths{16, 64, 128};
  std::vector<std::string> strategies{"pipelined", "bulk"};
  std::string trace;
  DType wire = DType::f32;
  BenchSettings settings;
  GetTuning get;  // for strategy get
};

// A contestant: its name and its settings.
struct Entry {
  std::string name;
  ExchangeOptions options;
};

struct Row {
  std::string strategy;
  std::uint64_t width = 0;
  DType wire = DType::f32;
  Times times;
  double error = 0;
  std::size_t passes = 1;
  std::uint64_t link_bytes = 0;  // brought to the first rank in a step
  bool gets = false;             // strategy get, to which its settings apply
};

// The time that no strategy can undercut: the time of the halo transfer alone or of the sum alone,
// whichever is longer.
struct Limit {
  double link_ms = 0, sum_ms = 0;
  double ms() const { return std::max(link_ms, sum_ms); }
};

std::vector<Entry> entries(const Options& o, const Session& session) {
  std::vector<Entry> list;
  for (const std::string& name : o.strategies) {
    list.push_back({name, contestant(name, o.wire, o.settings.transport, session.gpus > 0)});
    list.back().options.route.get = o.get;
  }
  return list;
}

// Throws UsageError for an unknown strategy, and for settings of strategy get that do not suit the
// transport.
void check_strategies(const Options& o, Session& session) {
  for (const Entry& entry : entries(o, session))
    if (entry.options.route.reads_by_nvshmem()) note_needs(session, resolved(entry.options.route));
}

// Decides where the work is done: on CPU ranks if --ranks is given, else on GPUs.
void choose_device(Options& o, Session& session) {
  const CLI::App& command = *session.command;
  if (command.count("--ranks") == 0)
    session.gpus = std::max(session.gpus, 1);
  else if (command.count("--strategies") == 0)
    o.strategies = {"bulk"};
}

class Contest {
 public:
  Contest(const Options& o, World& world, const Session& session)
      : o_(o),
        world_(world),
        session_(session),
        dataset_(read_graph(world, o.graph, session)),
        partition_(shared_partition(world, dataset_, o.settings.scheme, session.seed)) {}

  void run() {
    require_wire_used({.wire = o_.wire}, world_.size());
    for (const Entry& entry : entries(o_, session_)) {
      const Phase phase("measuring " + entry.name);
      session_.gpus > 0 ? measure_on_gpus(entry) : measure_on_ranks(entry);
    }
    if (world_.rank() != 0) return;
    if (!o_.trace.empty()) write_trace(o_.trace, trace_);
    session_.json ? print_json(to_json()) : print_text();
  }

 private:
  void measure_on_ranks(const Entry& entry) {
    const Stopwatch watch;
    const auto aggregator =
        make_aggregator(world_, dataset_.graph, dataset_.symmetric, partition_, entry.options);
    place_seconds_.push_back(watch.seconds());
    if (halo_rows_ == 0)  // the same for each strategy
      halo_rows_ = measure_partition(dataset_.graph, partition_).parts.front().halo_rows;
    for (const std::uint64_t width : o_.widths) {
      const auto bench = make_cpu_bench(world_, dataset_.graph, partition_, *aggregator, width);
      add_row(entry, *bench, *aggregator, width);
    }
  }
  void measure_on_gpus(const Entry& entry) {
    const Stopwatch watch;
    const auto aggregator =
        make_gpu_aggregator(world_, dataset_.graph, dataset_.symmetric, partition_, entry.options);
    wait_for_gpu();
    place_seconds_.push_back(watch.seconds());
    for (const std::uint64_t width : o_.widths) measure(entry, *aggregator, width);
  }

  // Checks a step, then times steps. Throws MismatchError.
  Row& add_row(const Entry& entry, AggregateBench& bench, const Aggregator& aggregator,
               std::uint64_t width) {
    Row row{.strategy = entry.name, .width = width, .wire = entry.options.route.wire, .times = {}};
    const std::uint64_t bytes_before = aggregator.cost().bytes_fetched;
    row.error = bench.check();
    row.gets = entry.options.route.gets_on_gpus();
    row.link_bytes = aggregator.cost().bytes_fetched - bytes_before;
    require<MismatchError>(row.error < (row.wire == DType::bf16 ? 4e-3 : 1e-5),
                           "{} at width {} is wrong by {} relative", entry.name, width, row.error);
    row.times = bench.time_steps(o_.settings.effort);
    edges_ = aggregator.edges();
    rows_.push_back(row);
    return rows_.back();
  }

  void measure(const Entry& entry, GpuAggregator& aggregator, std::uint64_t width) {
    GpuBench bench(world_, dataset_.graph, partition_, aggregator, width);
    Row& row = add_row(entry, bench, aggregator, width);
    row.passes = aggregator.passes(width);
    if (!o_.trace.empty()) add_trace(row, bench.trace());
    if (entry.options.route.placement().halo != HaloKind::complete)
      halo_rows_ = std::max(halo_rows_, aggregator.halo_rows());
    if (entry.options.route.strategy != Strategy::pipelined) return;
    Limit& limit = limits_[width];
    limit.sum_ms = bench.time_part(StepPart::sum, o_.settings.effort).median();
    if (world_.size() > 1)
      limit.link_ms = bench.time_part(StepPart::link, o_.settings.effort).least();
  }

  // Lanes of all strategies and widths are stacked; each starts at its own time 0.
  void add_trace(const Row& row, const std::vector<std::vector<TraceSpan>>& ranks) {
    trace_.resize(ranks.size());
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    for (const auto& spans : ranks)
      for (const TraceSpan& span : spans) first = std::min(first, span.begin);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      for (const TraceSpan& s : ranks[rank])
        trace_[rank].push_back({s.name, fmt::format("{} {}: {}", row.strategy, row.width, s.lane),
                                s.begin - first, s.end - first});
  }

  double median_of(const std::string& strategy, std::uint64_t width) const {
    for (const Row& row : rows_)
      if (row.strategy == strategy && row.width == width) return row.times.median();
    return 0;
  }
  // Speedup over another strategy; 0 if the other was not measured.
  double ratio(const Row& row, const std::string& other) const {
    return median_of(other, row.width) / row.times.median();
  }
  double share(const Row& row) const {
    const auto limit = limits_.find(row.width);
    return limit == limits_.end() ? 0 : row.times.median() / limit->second.ms();
  }
  // Figures of the first rank.
  std::uint64_t gathered_bytes(const Row& row) const {
    return edges_ * (row.width * sizeof(float) + sizeof(Slot));
  }

  json to_json() const {
    json rows = json::array();
    for (const Row& row : rows_) {
      json one = {{"strategy", row.strategy},      {"width", row.width},
                  {"wire", to_string(row.wire)},   {"median_ms", row.times.median()},
                  {"least_ms", row.times.least()}, {"most_ms", row.times.most()},
                  {"passes", row.passes},          {"error", row.error},
                  {"link_bytes", row.link_bytes},  {"gathered_bytes", gathered_bytes(row)}};
      if (const auto limit = limits_.find(row.width); limit != limits_.end()) {
        one["limit_ms"] = limit->second.ms();
        one["link_ms"] = limit->second.link_ms;
        one["sum_ms"] = limit->second.sum_ms;
        one["over_limit"] = share(row);
      }
      if (row.gets) one["get"] = cli::to_json(o_.get);
      for (const char* other : {"bulk", "cusparse"})
        if (median_of(other, row.width) > 0)
          one[std::string("speedup_over_") + other] = ratio(row, other);
      rows.push_back(std::move(one));
    }
    return {{"graph", dataset_.name},
            {"device", device_name(session_)},
            {"ranks", world_.size()},
            {"gpus", session_.gpus > 0 ? world_.size() : 0},
            {"wire", to_string(o_.wire)},
            {"place_s", place_seconds_},
            {"halo_rows", halo_rows_},
            {"edges", edges_},
            {"rows", rows}};
  }

  void print_text() const {
    fmt::print("{} on {}, {} on the wire; rank 0: {} edges, {} halo rows\n", dataset_.name,
               ranks_of(world_, session_), to_string(o_.wire), edges_, halo_rows_);
    fmt::print("{:<10} {:>5} {:>9} {:>9} {:>9} {:>6} {:>9} {:>9} {:>7} {:>8} {:>10}\n", "strategy",
               "width", "median ms", "least", "most", "passes", "link ms", "sum ms", "/limit",
               "x bulk", "x cusparse");
    for (const Row& row : rows_) {
      const auto limit = limits_.find(row.width);
      const Limit l = limit == limits_.end() ? Limit{} : limit->second;
      fmt::print(
          "{:<10} {:>5} {:>9.3f} {:>9.3f} {:>9.3f} {:>6} {:>9.3f} {:>9.3f} {:>7.2f} "
          "{:>8.2f} {:>10.2f}\n",
          row.strategy, row.width, row.times.median(), row.times.least(), row.times.most(),
          row.passes, l.link_ms, l.sum_ms, share(row), ratio(row, "bulk"), ratio(row, "cusparse"));
    }
  }

  const Options& o_;
  World& world_;
  const Session& session_;
  const Dataset dataset_;
  const Partition partition_;
  std::vector<Row> rows_;
  std::map<std::uint64_t, Limit> limits_;  // by width
  std::vector<double> place_seconds_;
  std::vector<std::vector<TraceSpan>> trace_;  // by rank
  std::uint64_t halo_rows_ = 0, edges_ = 0;
};

}  // namespace

void add_bench_settings(CLI::App* command, Session& session, BenchSettings& settings) {
  command
      ->add_option("--repetitions", settings.effort.repetitions, "Repetitions of each measurement")
      ->check(in_range(1, 10000))
      ->capture_default_str();
  add_choice(command, "--partition", settings.scheme, parse_partition_scheme, "edges",
             "Scheme that assigns vertices to ranks");
  add_transport_option(command, settings.transport);
  command->add_option("--gpus", session.gpus, "Number of GPUs, with one process per GPU")
      ->check(in_range(1, kMostGpus));
  command->add_option("--seed", session.seed, "Seed of the partition (metis)")
      ->capture_default_str();
  add_timeout_options(command, session);
}

void add_bench(CLI::App& app, Session& session) {
  CLI::App* bench = app.add_subcommand("bench", "Measure the speed of this machine");
  add_examples(bench,
               "  plait bench aggregate products.plait --gpus 4\n"
               "  plait bench model products.plait --model gin --ranks 2 --training\n"
               "  plait bench messages products.plait --ranks 2\n"
               "  plait bench zoo");
  bench->require_subcommand(1);
  add_bench_messages(*bench, session);
  add_bench_model(*bench, session);
  add_bench_zoo(*bench, session);
  auto o = std::make_shared<Options>();
  CLI::App* command =
      add_command(*bench, session, "aggregate", "Time y = A x with several strategies, in one run",
                  [=, &session] {
                    choose_device(*o, session);
                    check_strategies(*o, session);
                    take_each_once(o->widths);
                    on_ranks(session, [&](World& world) { Contest(*o, world, session).run(); });
                  });
  command->add_option("graph", o->graph, "Graph file")->required();
  add_reading_options(command, session);
  add_list(command, "--widths,--dims", o->widths, "Widths of x (features per row), with commas")
      ->check(in_range(1, 1 << 20));
  CLI::Option* const strategies =
      add_list(command, "--strategies", o->strategies,
               "Strategies to time, with commas; cusparse is bulk with cuSPARSE's sum. With "
               "--ranks bulk alone, unless some are named");
  show_words(strategies, "pipelined, partial, bulk, replicate, get, paged, cusparse");
  add_wire_option(command, o->wire);
  as_output(session, command->add_option("--trace", o->trace,
                                         "File for a trace of one step per measurement, for "
                                         "Perfetto or chrome://tracing"));
  add_bench_settings(command, session, o->settings);
  command
      ->add_option("--ranks", session.ranks,
                   "Number of processes on this machine, to time sums on the CPU")
      ->check(in_range(1, kMostRanks))
      ->default_str("none")
      ->excludes(command->get_option("--gpus"));
  add_get_options(command, o->get);
  add_reorder_option(command, session);
  group_options(
      command, {{"Measurement", {"--widths", "--strategies", "--wire", "--repetitions", "--trace"}},
                {"GPUs and ranks", {"--seed"}}});
  add_examples(command,
               "  plait generate dcsbm --like products --no-features -o products.plait\n"
               "  plait bench aggregate products.plait --gpus 4 --widths 16,64,128 "
               "--strategies pipelined,bulk,cusparse\n"
               "  plait bench aggregate products.plait --ranks 2 --strategies bulk,get,replicate");
}

}  // namespace plait::cli
