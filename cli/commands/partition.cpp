// plait partition GRAPH: shows the cost of each scheme.
#include <fmt/core.h>

#include <algorithm>

#include "cli/cli.h"
#include "cli/route_predictor.h"
#include "plait/base/limits.h"
#include "plait/base/memory.h"
#include "plait/base/profile.h"
#include "plait/base/timer.h"
#include "plait/machine/machine.h"
#include "plait/partition/quality.h"
#include "plait/plan/choose.h"
#include "plait/plan/route.h"

namespace plait::cli {
namespace {

struct Options {
  std::string graph;
  std::vector<std::string> schemes{"all"};
  std::uint64_t width = 64;
  std::vector<std::uint64_t> predicted;  // widths
};

int parts_of(const Session& session) { return std::max(session.ranks, session.gpus); }

json counts_on_gpus(const PartQuality& part) {
  return {{"rows", part.dense_rows},
          {"listed_rows", part.listed_rows},
          {"packed_rows", part.packed_rows},
          {"partial",
           {{"rows", part.summed.rows},
            {"listed_rows", part.summed.listed_rows},
            {"packed_rows", part.summed.packed_rows},
            {"kept_edges", part.summed.kept_edges},
            {"sums", part.summed.sums},
            {"summed_edges", part.summed.summed_edges}}}};
}

// A partition, and what was found of it.
struct Found {
  PartitionScheme scheme;
  double seconds = 0;  // to find it
  PartitionQuality quality;
};

Found measure(const Dataset& dataset, PartitionScheme scheme, const Session& session) {
  const Timed phase(to_string(scheme));
  const Stopwatch watch;
  const Partition partition = timed("partition", [&] {
    return make_partition(scheme, dataset, parts_of(session), session.seed);
  });
  const double seconds = watch.seconds();
  return {scheme, seconds,
          timed("count halo", [&] { return measure_partition(dataset.graph, partition); })};
}

json to_json(const Found& found, std::uint64_t width) {
  const PartitionQuality& quality = found.quality;
  json ranks = json::array();
  for (const PartQuality& part : quality.parts)
    ranks.push_back({{"vertices", part.vertices},
                     {"edges", part.edges},
                     {"remote_edges", part.remote_edges},
                     {"halo_rows", part.halo_rows},
                     {"bytes_per_iteration", part.bytes(width)},
                     {"gpus", counts_on_gpus(part)}});
  return {{"scheme", to_string(found.scheme)},
          {"seconds", found.seconds},
          {"cut", quality.cut()},
          {"halo_rows", quality.halo_rows()},
          {"edge_imbalance", quality.edge_imbalance()},
          {"vertex_imbalance", quality.vertex_imbalance()},
          {"ranks", ranks}};
}

// The predicted times of y = A x on the partitions that were found, for as many GPUs or, on the
// CPU, ranks as there are parts.
class Predictions {
 public:
  Predictions(const Dataset& dataset, const Session& session, std::vector<std::uint64_t> widths)
      : predictor_(dataset.graph, parts_of(session), session),
        widths_(std::move(widths)),
        question_{.route = resolved({.gpu = session.gpus > 0}),
                  .open_strategy = true,
                  .open_partition = true,
                  .ranks = parts_of(session),
                  .times = kOften} {
    if (session.gpus > 0) plan_by_measured_machine(session);
  }

  // Returns the times on one partition: `predicted` of its scheme.
  json times(const Found& found) const {
    json list = json::array();
    for (const Strategy strategy : {Strategy::pipelined, Strategy::partial, Strategy::bulk,
                                    Strategy::replicate, Strategy::get}) {
      Route route = question_.route;
      route.strategy = strategy, route.partition = found.scheme;
      for (const std::uint64_t width : widths_)
        if (const auto ms = predictor_.milliseconds(route, found.quality, width))
          list.push_back({{"strategy", to_string(strategy)}, {"width", width}, {"ms", *ms}});
    }
    return list;
  }

  // Returns the ways that training takes if nothing was measured and memory is no limit: `chosen`.
  json chosen(const std::vector<Found>& found) const {
    const auto counts = [&](PartitionScheme scheme) {
      const auto one = std::ranges::find(found, scheme, &Found::scheme);
      return one == found.end() ? nullptr : &one->quality;
    };
    json list = json::array();
    // Other ways are judged beside the standard one.
    if (counts(question_.route.partition) == nullptr) return list;
    for (const std::uint64_t width : widths_) {
      RouteQuestion question = question_;
      question.widths = {width};
      const Route route = choose(question, {}, counts, [](const Route&) { return true; }).route;
      list.push_back({{"width", width},
                      {"partition", to_string(route.partition)},
                      {"strategy", to_string(route.strategy)}});
    }
    return list;
  }

 private:
  RoutePredictor predictor_;
  std::vector<std::uint64_t> widths_;
  RouteQuestion question_;  // of a run for which nothing is known, but for its widths
};

bool nothing_is_predicted(const json& result) {
  return std::ranges::all_of(result["schemes"],
                             [](const json& s) { return s["predicted"].empty(); });
}

void print_predictions(const json& result) {
  if (!nothing_is_predicted(result))
    fmt::print("predicted ms of y = A x\n{:<10} {:<10} {:>8} {:>12}\n", "partition", "strategy",
               "width", "ms");
  for (const json& s : result["schemes"])
    for (const json& p : s["predicted"])
      fmt::print("{:<10} {:<10} {:>8} {:>12.3f}\n", s["scheme"].get<std::string>(),
                 p["strategy"].get<std::string>(), p["width"].get<std::uint64_t>(),
                 p["ms"].get<double>());
  for (const json& c : result["chosen"])
    fmt::print("training at width {}, if nothing was measured: {} with {}\n",
               c["width"].get<std::uint64_t>(), c["partition"].get<std::string>(),
               c["strategy"].get<std::string>());
}

void print_text(const json& result) {
  for (const json& s : result["schemes"]) {
    fmt::print(
        "{}: cut {} edges, {} halo rows, imbalance {:.3f} of edges and {:.3f} of vertices, "
        "found in {:.2f} s\n",
        s["scheme"].get<std::string>(), s["cut"].get<std::uint64_t>(),
        s["halo_rows"].get<std::uint64_t>(), s["edge_imbalance"].get<double>(),
        s["vertex_imbalance"].get<double>(), s["seconds"].get<double>());
    fmt::print("  {:>4} {:>12} {:>14} {:>14} {:>12} {:>16}\n", "rank", "vertices", "edges",
               "remote edges", "halo rows", "bytes/iteration");
    int rank = 0;
    for (const json& r : s["ranks"])
      fmt::print("  {:>4} {:>12} {:>14} {:>14} {:>12} {:>16}\n", rank++,
                 r["vertices"].get<std::uint64_t>(), r["edges"].get<std::uint64_t>(),
                 r["remote_edges"].get<std::uint64_t>(), r["halo_rows"].get<std::uint64_t>(),
                 format_bytes(r["bytes_per_iteration"].get<std::uint64_t>()));
  }
  if (result.contains("chosen")) print_predictions(result);
}

std::vector<PartitionScheme> schemes_of(const Options& o) {
  std::vector<PartitionScheme> schemes;
  for (const std::string& name : o.schemes) {
    if (name == "all") {
      const auto all = partition_schemes();
      return {all.begin(), all.end()};
    }
    schemes.push_back(parse_partition_scheme(name));
  }
  take_each_once(schemes);
  return schemes;
}

void run(const Options& o, const Session& session) {
  const std::vector<PartitionScheme> schemes = schemes_of(o);
  const Dataset dataset = read_graph(o.graph, session);
  json result = {{"graph", dataset.name}, {"width", o.width}, {"schemes", json::array()}};
  std::vector<Found> found;
  for (const PartitionScheme scheme : schemes) {
    found.push_back(measure(dataset, scheme, session));
    result["schemes"].push_back(to_json(found.back(), o.width));
  }
  if (!o.predicted.empty()) {
    const Timed phase("predict");
    Predictions predictions(dataset, session, o.predicted);
    for (std::size_t s = 0; s < found.size(); ++s)
      result["schemes"][s]["predicted"] = predictions.times(found[s]);
    result["chosen"] = predictions.chosen(found);
    if (!session.quiet && nothing_is_predicted(result))
      fmt::print(stderr,
                 "plait: warning: nothing is predicted, as the rates of {} on this machine are not "
                 "known; plait doctor --measure --ranks {} measures them\n",
                 counted(static_cast<std::uint64_t>(parts_of(session)), "rank"), parts_of(session));
    result["machine"] = session.gpus > 0 ? json(machine().name) : json(nullptr);
  }
  session.json ? print_json(result) : print_text(result);
}

}  // namespace

void add_partition(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(app, session, "partition",
                                  "Show the cost of each way to cut the graph", [=, &session] {
                                    take_each_once(o->predicted);
                                    run(*o, session);
                                  });
  command->add_option("graph", o->graph, "Graph file")->required();
  add_reading_options(command, session);
  show_words(add_list(command, "--partition", o->schemes, "Schemes to measure, with commas"),
             words_of(PartitionScheme{}) + ", all");
  add_reorder_option(command, session);
  command->add_option("--width,--dim", o->width, "Features per row, for the bytes per iteration")
      ->capture_default_str();
  CLI::Option* const ranks = command->add_option("--ranks", session.ranks, "Number of parts")
                                 ->check(in_range(1, kMostRanks))
                                 ->capture_default_str();
  command
      ->add_option("--gpus", session.gpus,
                   "Number of parts, one per GPU; this host need not have the GPUs")
      ->check(in_range(1, kMostGpus))
      ->excludes(ranks);
  add_list(command, "--predict", o->predicted,
           "Widths of rows (features), with commas, for which to predict the time of y = A "
           "x on so many GPUs or, with --ranks, by the rates that plait doctor --measure "
           "kept; and to tell what training would choose if nothing was measured of this graph: on "
           "GPUs pipelined or partial, on ranks bulk")
      ->check(in_range(1, 1 << 20))
      ->default_str("none");
  command->add_option("--seed", session.seed, "Seed of metis")->capture_default_str();
  add_profile_options(command, session);
  add_examples(
      command,
      "  plait partition products.plait --ranks 4 --width 128\n"
      "  plait partition products.plait --ranks 4 --partition edges --reorder communities\n"
      "  plait partition products.plait --gpus 8 --predict 16,64,128");
}

}  // namespace plait::cli
