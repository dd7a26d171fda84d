#include "cli/ranks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <exception>

#include "cli/options/command_tree.h"
#include "cli/options/get_options.h"
#include "cli/profile.h"
#include "plait/aggregate/shared_order.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/limits.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/profile.h"
#include "plait/base/progress.h"
#include "plait/base/system_limits.h"
#include "plait/exchange/shared_machine.h"
#include "plait/io/fingerprint.h"
#include "plait/kernels/cuda/get_module.h"
#include "plait/machine/machine.h"
#include "plait/measure/copy_rate.h"
#include "plait/plan/route.h"
#include "plait/symmetric/agreement.h"
#include "plait/symmetric/peer_access.h"
#include "plait/world/difference.h"
#include "plait/world/gather.h"
#include "plait/world/launch.h"
#include "plait/world/phase.h"

namespace plait::cli {

void add_transport_option(CLI::App* command, DeviceTransport& transport) {
  add_choice(command, "--transport", transport, parse_device_transport, "cuda",
             "Transport between GPUs: cuda, or nvshmem if it is installed");
}

void add_count_options(CLI::App* command, Session& session) {
  CLI::Option* const ranks =
      command->add_option("--ranks", session.ranks, "Number of processes on this machine")
          ->check(in_range(1, kMostRanks))
          ->capture_default_str();
  command->add_option("--gpus", session.gpus, "Number of GPUs, with one process per GPU")
      ->check(in_range(1, kMostGpus))
      ->excludes(ranks);
}

void add_rank_options(CLI::App* command, Session& session, DeviceTransport& transport) {
  add_reorder_option(command, session);
  add_count_options(command, session);
  add_transport_option(command, transport);
}

void add_wire_option(CLI::App* command, DType& wire) {
  add_choice(command, "--wire", wire, parse_wire, "fp32",
             "Type in which rows cross between ranks to be summed. With bf16, half the bytes cross "
             "between GPUs and between hosts, and results depend on the number of ranks: each "
             "number of a remote row is rounded to 8 bits. Own rows and sums are fp32");
}

void add_route_options(CLI::App* command, Session& session, Route& route) {
  add_choice(command, "--strategy", route.strategy, parse_strategy, "auto",
             "Strategy that moves remote rows to where they are summed; auto: bulk on CPUs, "
             "pipelined on GPUs");
  add_choice(command, "--partition", route.partition, parse_partition_scheme, "edges",
             "Scheme that assigns vertices to ranks");
  add_rank_options(command, session, route.transport);
  add_wire_option(command, route.wire);
  command->add_flag(
      "--exact", route.exact,
      "Give the same bits on any number of ranks or GPUs and with any partition; slower");
  add_get_options(command, route.get);
  command->parse_complete_callback([command, &session, &route] {
    route.gpu = session.gpus > 0;
    session.open_strategy = route.strategy == Strategy::automatic;
    session.open_partition = command->count("--partition") == 0;
    session.open_settings = std::ranges::all_of(
        get_parameters(), [&](const GetParameter& p) { return command->count(option_of(p)) == 0; });
    route = resolved(route);
    note_needs(session, route);
  });
}

void note_needs(Session& session, const Route& route) {
  session.reaches_peers = session.reaches_peers || needs_peer_access(route);
  session.needs_module = session.needs_module || route.reads_by_nvshmem();
  if (route.gpu && route.transport != DeviceTransport::nvshmem)
    session.needs_one_host =
        "ranks are on several hosts, whose GPUs share no memory; leave out --gpus, or use "
        "--transport nvshmem where NVLink spans the hosts";
}

void add_timeout_options(CLI::App* command, Session& session) {
  command
      ->add_option("--timeout", session.timeout,
                   "Time in seconds after which a silent rank is lost")
      ->check(in_range(0.5, 86400.0))
      ->default_str("5");
  command
      ->add_option(
          "--gpu-timeout", session.gpu_timeout,
          "Time in seconds after which a rank is lost if its GPU neither finishes work nor "
          "waits for another rank; 0: never")
      ->check(in_range(0.0, 86400.0))
      ->default_str("600");
}

namespace {

// The value of an option that all ranks must have alike. For a file that is read, this is only
// whether the option is given, because the content is compared later.
std::string value_of(const CLI::Option& option, const Session& session) {
  const bool given = option.count() > 0;
  const bool read = takes_file(option) && !is_output(option, session);
  const bool flag = option.get_items_expected_max() == 0;
  if (given) return read || flag ? "given" : CLI::detail::join(option.results(), ",");
  const std::string standard = option.get_default_str();
  return standard.empty() || read || flag ? "not given" : standard;
}

// The settings that all ranks must have alike: every option except the form of the output and the
// time to wait for other ranks.
Facts settings_of(const Session& session) {
  Facts facts{{"the version of Plait", PLAIT_VERSION},
              {"the command", session.command->get_name()}};
  for (const CLI::Option* option : session.command->get_options()) {
    const std::string name = option->get_name();
    static constexpr std::array kOwn{"--help", "--json", "--quiet", "--timeout", "--gpu-timeout"};
    if (std::ranges::find(kOwn, name) != kOwn.end()) continue;
    facts.emplace_back(name, value_of(*option, session));
  }
  return facts;
}

// Sets the timeouts of the command line in `settings`, a WorldConfig or LaunchOptions.
template <class Settings>
void set_timeouts(const Session& session, Settings& settings) {
  const auto set = [](auto& timeout, std::optional<double> seconds) {
    if (seconds) timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
  };
  set(settings.timeout, session.timeout);
  set(settings.work_timeout, session.gpu_timeout);
}

void require_own_gpus(World& world) {
  const auto ids = gather_found(world, current_gpu_id);
  for (std::size_t rank = 0; rank < ids.size(); ++rank) {
    const auto first = static_cast<std::size_t>(std::ranges::find(ids, ids[rank]) - ids.begin());
    require<UsageError>(first == rank,
                        "ranks {} and {} have the same GPU; start as many ranks as there are GPUs, "
                        "and let each process see all of its host's GPUs or one of its own",
                        first, rank);
  }
}

// Collective. Reports the profiles of all ranks on rank 0.
void report_profile(const Session& session, World& world) {
  const Profile mine = end_profile();
  std::vector<Profile> ranks;
  for (const std::string& text : gather_at(world, 0, to_text(mine)))
    ranks.push_back(profile_of_text(text));
  if (!session.trace.empty()) {
    std::vector<std::string> spans = gather_at(world, 0, to_text(mine.spans));
    for (std::size_t rank = 0; rank < spans.size(); ++rank) {
      ranks[rank].spans = spans_of_text(spans[rank]);
      spans[rank] = {};
    }
  }
  MoveLimit limit;
  if (session.gpus > 0)
    limit = {"link", machine().passes.link};
  else if (session.profile && world.size() > 1 && world.one_host())
    limit = {"memory copy", measure_copy_rate(world)};
  if (world.rank() == 0) report_profile(session, std::move(ranks), limit);
}

// Returns the ranks that reach each other's GPUs. Refuses, before anything is read, a world on
// which the command cannot work.
World& reached_ranks(const Session& session, World& world) {
  if (session.gpus == 0 || world.one_host()) return world;
  require<UsageError>(session.needs_one_host.empty(), "{}", session.needs_one_host);
  return session.replica_per_host ? world.host_world() : world;
}

// Collective. Lets GPUs plan their steps by what `plait doctor --measure` measured.
void take_measured_machine(const Session& session, World& world) {
  if (session.gpus == 0) return;
  const std::string note = use_measured_machine(world);
  if (!note.empty() && !session.quiet) fmt::print(stderr, "plait: warning: {}\n", note);
}

// Runs `body`, and reports the profile if there is one, also of a run that all ranks end because
// the user has interrupted it.
void run_profiled(const Session& session, World& world, const std::function<void(World&)>& body) {
  take_measured_machine(session, reached_ranks(session, world));
  if (!profiling()) return body(world);
  if (session.gpus > 0) settle_phases_by(wait_for_gpu);
  std::exception_ptr interrupted;
  try {
    body(world);
  } catch (const Interrupted&) {
    interrupted = std::current_exception();
  }
  report_profile(session, world);
  if (interrupted) std::rethrow_exception(interrupted);
}

// Runs `body` in the world that the environment names.
// Collective. Ranks of a host may have a limit together, and joining has started threads: all hold
// those that they will need besides at the same time.
void require_threads_of_ranks(World& world, int share) {
  std::optional<HeldThreads> held;
  on_all_or_none(world, [&] { held.emplace(2 * (share - 1)); });  // libtorch has a pool of its own
  held.reset();
  world.barrier();  // no rank goes on while another still holds them
}

void run_as_rank(Session& session, WorldConfig config, const std::function<void(World&)>& body) {
  set_timeouts(session, config);
  session.quiet = session.quiet || config.rank != 0;
  set_progress(session.progress());
  const int share = thread_share();
  const ThreadCount threads(share);
  // All that may fail on one rank alone comes after this, so that the others learn of it at once.
  auto world = World::join(config);
  require_threads_of_ranks(*world, share);
  if (session.gpus > 0) use_gpu(gpu_of_rank(config, gpu_count()));
  require_equal<UsageError>(*world, "ranks have different settings", settings_of(session));
  if (config.rank == 0) check_outputs(session);
  if (session.gpus > 0) require_own_gpus(*world);
  World& reached = reached_ranks(session, *world);
  if (session.reaches_peers) require_peer_access(reached);  // before anything is read
  if (session.needs_module) require_get_module();
  // All ranks are interrupted together, and none ends while another still works: no rank is lost.
  std::exception_ptr interrupted;
  try {
    run_profiled(session, *world, body);
  } catch (const Interrupted&) {
    interrupted = std::current_exception();
  }
  world.reset();
  if (interrupted) std::rethrow_exception(interrupted);
}

// Asks the driver, after which a process must not fork ranks.
void require_gpus(int gpus) {
  if (gpus == 0) return;
  const int found = gpu_count();
  require<UsageError>(
      gpus <= found, "the command asks for {}, but {}",
      counted(static_cast<std::uint64_t>(gpus), "GPU"),
      built_with_cuda() ? fmt::format("this host has {}", found) : "this build has no GPU engine");
}

}  // namespace

void on_ranks(Session& session, const std::function<void(World&)>& body) {
  if (const auto config = world_from_environment()) {
    require<UsageError>(session.ranks == 1 || session.ranks == config->size,
                        "{} were asked for, but the launcher or the environment says {}; leave out "
                        "--ranks",
                        counted(static_cast<std::uint64_t>(session.ranks), "rank"), config->size);
    return run_as_rank(session, *config, body);
  }
  LaunchOptions options{.ranks = std::max(session.ranks, session.gpus)};
  if (options.ranks == 1) {
    require_gpus(session.gpus);
    if (session.needs_module) require_get_module();
    if (session.gpus > 0) use_gpu(0);
    require_threads(2 * (thread_count() - 1));  // libtorch has a pool of its own
    return run_profiled(session, *World::alone(), body);
  }
  set_timeouts(session, options);
  if (!built_with_cuda()) require_gpus(session.gpus);
  if (session.needs_module) require_get_module();
  if (const auto code = launch(options)) {
    session.exit_code = *code;
    if (profiling()) end_profile();  // ranks have reported theirs
    return;
  }
  end_on_interrupt();
  require_gpus(session.gpus);
  run_as_rank(session, world_from_environment().value(), body);
}

std::string ranks_of(const World& world, const Session& session) {
  return counted(static_cast<std::uint64_t>(world.size()), session.gpus > 0 ? "GPU" : "rank");
}

std::string on_the_wire(const Route& route) {
  return route.wire == DType::f32 ? "" : fmt::format(", {} on the wire", to_string(route.wire));
}

const char* device_name(const Session& session) { return session.gpus > 0 ? "cuda" : "cpu"; }

Dataset read_graph(World& world, const std::string& path, const Session& session) {
  if (world.size() == 1) return read_graph(path, session);
  Dataset dataset = [&] {
    const EqualDemands demands(world.ranks_of_host().size());
    world.barrier();
    return read_file(path, session);
  }();
  {
    const Phase phase("comparing the ranks' graphs", "compare graphs");
    require_equal(world, "ranks read different graphs", fingerprint(dataset));
  }
  std::optional<Dataset> renumbered =
      shared_renumbering(world, dataset, session.reorder, session.seed, session.gpus > 0);
  return renumbered ? std::move(*renumbered) : std::move(dataset);
}

std::vector<Strategy> worthwhile_strategies(World& world, const Route& standard) {
  if (!standard.gpu && !world.one_host()) return {Strategy::bulk, Strategy::replicate};
  if (!standard.gpu) return {Strategy::bulk, Strategy::get, Strategy::replicate};
  if (needs_peer_access(standard) && !unreached_peer(world).empty()) return {Strategy::bulk};
  return {Strategy::pipelined, Strategy::partial, Strategy::bulk, Strategy::get};
}

}  // namespace plait::cli
