// plait partition GRAPH: shows the cost of each scheme.
#include <fmt/core.h>

#include "cli/cli.h"
#include "plait/base/limits.h"
#include "plait/base/memory.h"
#include "plait/base/profile.h"
#include "plait/base/timer.h"
#include "plait/partition/quality.h"

namespace plait::cli {
namespace {

struct Options {
  std::string graph;
  std::string scheme = "all";
  std::uint64_t width = 64;
};

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

json measure(const Dataset& dataset, PartitionScheme scheme, const Session& session,
             std::uint64_t width) {
  const Timed phase(to_string(scheme));
  const Stopwatch watch;
  const Partition partition = timed(
      "partition", [&] { return make_partition(scheme, dataset, session.ranks, session.seed); });
  const double seconds = watch.seconds();
  const PartitionQuality quality =
      timed("count halo", [&] { return measure_partition(dataset.graph, partition); });
  json ranks = json::array();
  for (const PartQuality& part : quality.parts)
    ranks.push_back({{"vertices", part.vertices},
                     {"edges", part.edges},
                     {"remote_edges", part.remote_edges},
                     {"halo_rows", part.halo_rows},
                     {"bytes_per_iteration", part.bytes(width)},
                     {"gpus", counts_on_gpus(part)}});
  return {{"scheme", to_string(scheme)},
          {"seconds", seconds},
          {"cut", quality.cut()},
          {"halo_rows", quality.halo_rows()},
          {"edge_imbalance", quality.edge_imbalance()},
          {"vertex_imbalance", quality.vertex_imbalance()},
          {"ranks", ranks}};
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
}

void run(const Options& o, const Session& session) {
  const Dataset dataset = read_graph(o.graph, session);
  json result = {{"graph", dataset.name}, {"width", o.width}, {"schemes", json::array()}};
  if (o.scheme == "all")
    for (const PartitionScheme scheme : partition_schemes())
      result["schemes"].push_back(measure(dataset, scheme, session, o.width));
  else
    result["schemes"].push_back(
        measure(dataset, parse_partition_scheme(o.scheme), session, o.width));
  session.json ? print_json(result) : print_text(result);
}

}  // namespace

void add_partition(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, session, "partition", "Show the cost of each way to cut the graph",
                  [=, &session] { run(*o, session); });
  command->add_option("graph", o->graph, "Graph file")->required();
  show_words(
      command->add_option("--partition", o->scheme, "Scheme to measure")->capture_default_str(),
      words_of(PartitionScheme{}) + ", all");
  add_reorder_option(command, session);
  command->add_option("--width,--dim", o->width, "Features per row, for the bytes per iteration")
      ->capture_default_str();
  command->add_option("--ranks", session.ranks, "Number of parts")
      ->check(CLI::Range(1, kMostRanks))
      ->capture_default_str();
  command->add_option("--seed", session.seed, "Seed of metis")->capture_default_str();
  add_profile_options(command, session);
  add_examples(
      command,
      "  plait partition products.plait --ranks 4 --width 128\n"
      "  plait partition products.plait --ranks 4 --partition edges --reorder communities");
}

}  // namespace plait::cli
