// plait bench messages GRAPH: times a search for connected components whose labels are pushed to
// their owners (exchange/messages.h), on CPU ranks or GPUs.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "cli/commands/contestant.h"
#include "cli/ranks.h"
#include "plait/aggregate/shared_partition.h"
#include "plait/apps/components.h"
#include "plait/base/error.h"
#include "plait/base/limits.h"
#include "plait/measure/cuda/message_bench.h"
#include "plait/plan/route.h"
#include "plait/symmetric/agreement.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

struct Options {
  std::string graph;
  BenchSettings settings;
};

class MessageBench {
 public:
  MessageBench(const Options& o, World& world, const Session& session)
      : o_(o),
        world_(world),
        session_(session),
        dataset_(read_graph(world, o.graph, session)),
        partition_(shared_partition(world, dataset_, o.settings.scheme, session.seed)) {
    require_on_all<UsageError>(dataset_.symmetric,
                               "{} is not its own transpose, so that labels could not go back "
                               "along some edges; plait convert --undirected adds the others",
                               dataset_.name);
    require_on_all<UsageError>(dataset_.vertices() <= std::numeric_limits<std::uint32_t>::max(),
                               "labels are numbers of 32 bits, but there are {} vertices",
                               dataset_.vertices());
  }

  void run() {
    const Route route = resolved({.partition = o_.settings.scheme,
                                  .transport = o_.settings.transport,
                                  .gpu = session_.gpus > 0});
    const auto exchange = make_exchange(
        world_, dataset_.graph, true, partition_,
        {.route = route, .shards = {.transposed = false, .slot_vertices = true}, .max_width = 1});
    const auto own = partition_.size(world_.rank());
    const auto search =
        route.gpu ? make_gpu_search(*exchange, own) : make_cpu_search(*exchange, own);
    check(*search);
    const MessageCost before = search->cost();
    double searches = 0;
    times_ = in_phase("timing searches", [&] {
      return time_steps(world_, o_.settings.effort, [&](int more) {
        for (int k = 0; k < more; ++k) search->run();
        searches += more;
      });
    });
    count(before, search->cost(), searches);
    if (world_.rank() == 0) session_.json ? print_json(to_json()) : print_text();
  }

 private:
  // Compares the labels of a first search with components_reference().
  void check(ComponentSearch& search) {
    const Phase phase("checking a search", "check");
    search.run();
    const std::vector<std::uint32_t> found = search.labels();
    std::uint64_t counts[2] = {};  // wrong labels, components
    on_all_or_none(world_, [&] {
      const std::vector<std::uint64_t> expected = components_reference(dataset_);
      for (std::uint64_t i = 0; i < found.size(); ++i) {
        const std::uint64_t v = partition_.number(world_.rank(), i);
        counts[0] += found[i] != expected[v];
        counts[1] += expected[v] == v;
      }
    });
    world_.all_reduce_sum(std::span(counts));
    require_on_all<MismatchError>(counts[0] == 0, "{} labels of {} are wrong", counts[0],
                                  dataset_.vertices());
    components_ = counts[1];
  }

  // Notes what a search has cost on average: rows may take labels in another order each time.
  void count(const MessageCost& before, const MessageCost& after, double searches) {
    std::uint64_t sums[2] = {after.values - before.values, after.bytes - before.bytes};
    world_.all_reduce_sum(std::span(sums));
    rounds_ = static_cast<double>(after.pushes - before.pushes) / searches;
    values_ = static_cast<double>(sums[0]) / searches;
    bytes_ = static_cast<double>(sums[1]) / searches;
  }

  double per_round(double ms) const { return 1e3 * ms / rounds_; }

  json to_json() const {
    return {{"graph", dataset_.name},
            {"ranks", world_.size()},
            {"device", device_name(session_)},
            {"partition", to_string(o_.settings.scheme)},
            {"vertices", dataset_.vertices()},
            {"edges", dataset_.edges()},
            {"components", components_},
            {"rounds", rounds_},
            {"median_ms", times_.median()},
            {"least_ms", times_.least()},
            {"most_ms", times_.most()},
            {"round_us", per_round(times_.median())},
            {"values", values_},
            {"bytes", bytes_}};
  }

  void print_text() const {
    fmt::print("{} on {}: {}\n", dataset_.name, ranks_of(world_, session_),
               counted(components_, "component"));
    fmt::print("{:>9} {:>9} {:>9} {:>8} {:>9} {:>12} {:>12}\n", "median ms", "least", "most",
               "rounds", "us/round", "values sent", "bytes sent");
    fmt::print("{:>9.3f} {:>9.3f} {:>9.3f} {:>8.1f} {:>9.1f} {:>12.0f} {:>12.0f}\n",
               times_.median(), times_.least(), times_.most(), rounds_, per_round(times_.median()),
               values_, bytes_);
  }

  const Options& o_;
  World& world_;
  const Session& session_;
  const Dataset dataset_;
  const Partition partition_;
  Times times_;  // of whole searches
  std::uint64_t components_ = 0;
  double rounds_ = 0, values_ = 0, bytes_ = 0;  // per search; the latter two of all ranks
};

}  // namespace

void add_bench_messages(CLI::App& bench, Session& session) {
  auto o = std::make_shared<Options>();
  CLI::App* command = add_command(
      bench, session, "messages",
      "Time a search for connected components, on a graph that is its own transpose, whose "
      "labels ranks send to each other",
      [=, &session] {
        on_ranks(session, [&](World& world) { MessageBench(*o, world, session).run(); });
      });
  command->add_option("graph", o->graph, "Graph file")->required();
  add_reading_options(command, session);
  add_bench_settings(command, session, o->settings);
  command->add_option("--ranks", session.ranks, "Number of processes on this machine")
      ->check(in_range(1, kMostRanks))
      ->capture_default_str()
      ->excludes(command->get_option("--gpus"));
  add_reorder_option(command, session);
  group_options(command, {{"Measurement", {"--repetitions"}}, {"GPUs and ranks", {"--seed"}}});
  add_examples(command,
               "  plait generate grid --rows 300 --columns 300 -o grid.plait\n"
               "  plait bench messages grid.plait --ranks 2\n"
               "  plait bench messages products.plait --gpus 4 --json");
}

}  // namespace plait::cli
