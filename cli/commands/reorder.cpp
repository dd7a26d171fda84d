// plait reorder IN OUT: renumbers the vertices so that those that read each other stand together.
#include "plait/reorder/reorder.h"

#include <fmt/core.h>

#include "cli/cli.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/limits.h"
#include "plait/base/parallel.h"
#include "plait/base/printable.h"
#include "plait/base/profile.h"
#include "plait/base/system_limits.h"
#include "plait/base/timer.h"
#include "plait/graph/renumber.h"
#include "plait/graph/statistics.h"
#include "plait/io/io.h"
#include "plait/reorder/communities.h"

namespace plait::cli {
namespace {

struct Options {
  std::string in, out;
  ReorderMethod method;
  bool undo = false;
  int threads = 0;  // 0: all
};

json to_json(const Options& o, const Dataset& before, const Dataset& after,
             const Reordering& found) {
  json result = {{"out", o.out},
                 {"method", o.undo ? "undo" : to_string(found.method)},
                 {"vertices", after.vertices()},
                 {"edges", after.edges()},
                 {"averaged_edge_span_before", averaged_edge_span(before.graph)},
                 {"averaged_edge_span", averaged_edge_span(after.graph)}};
  if (found.communities.empty()) return result;
  const CommunityStatistics communities = community_statistics(before.graph, found.communities);
  result["communities"] = communities.communities;
  result["modularity"] = communities.modularity;
  return result;
}

void print_text(const json& r) {
  const auto method = r["method"].get<std::string>();
  const std::string how = method == "undo" ? "in their first order"
                                           : fmt::format("in the order of {}, found in {:.2f} s",
                                                         method, r["seconds"].get<double>());
  fmt::print("{}: {} vertices {}; averaged edge span {:.1f} before and {:.1f} now\n",
             printable(r["out"].get<std::string>()), r["vertices"].get<std::uint64_t>(), how,
             r["averaged_edge_span_before"].get<double>(), r["averaged_edge_span"].get<double>());
  if (r.contains("communities"))
    fmt::print("{} communities, modularity {:.3f}\n", r["communities"].get<std::uint64_t>(),
               r["modularity"].get<double>());
}

void run(const Options& o, const Session& session) {
  require<UsageError>(o.undo || o.out.ends_with(".plait"),
                      "{}: only .plait files keep the numbers that vertices had before", o.out);
  const bool on_gpus =
      o.method == ReorderMethod::communities || o.method == ReorderMethod::automatic;
  require<UsageError>(session.gpus == 0 || on_gpus,
                      "--gpus finds communities; the order of {} is found on the CPU alone",
                      to_string(o.method));
  require_threads(o.threads - 1);
  const ThreadCount threads(o.threads > 0 ? o.threads : thread_count());
  if (session.gpus > 0) {
    use_gpu(0);
    if (profiling()) settle_phases_by(wait_for_gpu);
  }
  const Dataset before = read_graph(o.in, session);
  const Stopwatch watch;
  Reordering found;
  if (!o.undo) found = find_order(o.method, input_of(before, session));
  const double seconds = watch.seconds();
  const Dataset after = o.undo                ? with_first_numbers(before)
                        : found.order.empty() ? before
                                              : renumbered(before, found.order.span());
  write_graph(after, o.out, session);
  json result = timed("count", [&] { return to_json(o, before, after, found); });
  result["seconds"] = seconds;
  result["device"] = found.gpu ? "cuda" : "cpu";
  session.json ? print_json(result) : print_text(result);
}

}  // namespace

void add_reorder(CLI::App& app, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, session, "reorder",
                  "Renumber vertices so that those that read each other stand together",
                  [=, &session] { run(*o, session); });
  command->add_option("in", o->in, "Graph file")->required();
  add_reading_options(command, session);
  as_output(session,
            command->add_option("out", o->out,
                                "Graph to write: .plait, or any format with --undo. Other commands "
                                "tell results by the numbers that vertices had before, which it "
                                "keeps"))
      ->required();
  CLI::Option* const method =
      add_choice(command, "--method", o->method, parse_reorder_method, "auto",
                 "Order to use; auto: communities if the ids are scattered and that brings "
                 "them closer, else none");
  CLI::Option* const undo =
      command->add_flag("--undo", o->undo, "Give vertices back the numbers that they had at first")
          ->excludes(method);
  command
      ->add_option("--gpus", session.gpus,
                   "1: find communities (--method communities or auto) on a GPU, if it has the "
                   "memory: the same ones")
      ->check(in_range(1, 1))
      ->excludes(undo);
  command->add_option("--threads", o->threads, "Number of threads")
      ->check(in_range(1, kMostThreads))
      ->default_str("all");
  command->add_option("--seed", session.seed, "Seed of the metis order")->capture_default_str();
  add_profile_options(command, session);
  add_examples(command,
               "  plait reorder products.plait products-near.plait\n"
               "  plait reorder road.plait road-rcm.plait --method rcm\n"
               "  plait reorder products-near.plait products.plait --undo");
}

}  // namespace plait::cli
