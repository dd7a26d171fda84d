#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <iostream>

#include "cli/cli.h"
#include "cli/command_tree.h"
#include "plait/base/error.h"
#include "plait/base/gpu.h"
#include "plait/base/parallel.h"
#include "plait/base/printable.h"
#include "plait/base/progress.h"
#include "plait/io/fingerprint.h"
#include "plait/io/io.h"
#include "plait/symmetric/peer_access.h"
#include "plait/world/difference.h"
#include "plait/world/gather.h"
#include "plait/world/launch.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

bool tells_interrupt = true;  // of ranks, the first speaks

std::atomic<bool> stop_wanted{false};
// When the first signal came, ms: from the parent, and from all others; 0: not yet. They are told
// apart because one Ctrl-C comes twice, from the terminal and from the launcher, which passes on
// its own.
std::atomic<std::int64_t> first_signal[2];

// A second signal, the launcher's beside the terminal's, may come to another thread meanwhile.
void end_now(int) {
  static std::atomic_flag told;
  if (told.test_and_set()) return;
  static constexpr char kText[] = "plait: interrupted\n";
  if (tells_interrupt && ::write(STDERR_FILENO, kText, sizeof kText - 1) < 0)
    ::_exit(static_cast<int>(ExitCode::failed));
  ::_exit(static_cast<int>(ExitCode::interrupted));
}

// The value of an option that all ranks must have alike. Of a file that is read it says only
// whether there is one, because the content is compared later.
std::string value_of(const CLI::Option& option, const Session& session) {
  const bool given = option.count() > 0;
  const bool written = std::ranges::find(session.outputs, &option) != session.outputs.end();
  const bool read = takes_file(option) && !written;
  const bool flag = option.get_items_expected_max() == 0;
  if (given) return read || flag ? "given" : CLI::detail::join(option.results(), ",");
  const std::string standard = option.get_default_str();
  return standard.empty() || read || flag ? "not given" : standard;
}

// The settings that all ranks must have alike: every option, without the form of the output and the
// time to wait for others.
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

// Tells whether this program was started to ignore the signal, as shells start the background jobs
// of a script. The signal then stays ignored.
bool is_ignored(int number) {
  struct sigaction found {};
  ::sigaction(number, nullptr, &found);
  return found.sa_handler == SIG_IGN;
}

// A second signal of the same origin ends the program at once.
void want_stop(int, siginfo_t* signal, void*) {
  stop_wanted = true;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t ms = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
  std::int64_t first = 0;
  if (first_signal[signal->si_pid == ::getppid()].compare_exchange_strong(first, ms)) return;
  if (ms - first >= kOneWish.count()) end_now(0);
}

}  // namespace

void end_on_interrupt() {
  const auto config = valid_world_from_environment();
  tells_interrupt = !config || config->rank == 0;
  if (!is_ignored(SIGINT)) std::signal(SIGINT, end_now);
}

const std::atomic<bool>& stop_on_signals() {
  struct sigaction action {};
  action.sa_sigaction = want_stop;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (const int number : {SIGINT, SIGTERM})
    if (!is_ignored(number)) ::sigaction(number, &action, nullptr);
  return stop_wanted;
}

void add_output_flags(CLI::App* command, Session& session) {
  command->add_flag("--json", session.json, "Print one JSON object on stdout");
  command->add_flag("--quiet", session.quiet, "No progress on stderr");
}

CLI::App* add_command(CLI::App& app, Session& session, const std::string& name,
                      const std::string& description, std::function<void()> run) {
  CLI::App* command = app.add_subcommand(name, description);
  add_output_flags(command, session);
  command->callback([&session, command, run = std::move(run)] {
    session.command = command;
    set_progress(session.progress());
    run();
  });
  return command;
}

CLI::Option* as_output(Session& session, CLI::Option* option) {
  session.outputs.push_back(option);
  return option;
}

void add_examples(CLI::App* command, const std::string& text) {
  command->footer("Examples:\n" + text);
}

void add_transport_option(CLI::App* command, DeviceTransport& transport) {
  add_choice(command, "--transport", transport, parse_device_transport, "cuda",
             "How GPUs reach each other's memory; nvshmem where it is installed");
}

void add_spread_options(CLI::App* command, Session& session, Spread& spread) {
  add_choice(command, "--strategy", spread.route.strategy, parse_strategy, "auto",
             "How remote rows come to where they are summed; auto: by the device");
  add_choice(command, "--partition", spread.scheme, parse_partition_scheme, "edges",
             "How vertices are dealt out to ranks");
  CLI::Option* const ranks =
      command->add_option("--ranks", session.ranks, "Processes to spread the work over")
          ->check(CLI::Range(1, 4096))
          ->capture_default_str();
  command->add_option("--gpus", session.gpus, "GPUs to spread the work over, a process each")
      ->check(CLI::Range(1, 4096))
      ->excludes(ranks);
  add_transport_option(command, spread.route.transport);
  command->add_flag(
      "--exact", spread.route.exact,
      "The same bits on any number of ranks or GPUs, however the graph is cut; slower");
  command->parse_complete_callback([&session, &spread] {
    const bool on_gpus = spread.route.gpu = session.gpus > 0;
    if (!on_gpus) require_cpu_strategy(spread.route.strategy);
    require<UsageError>(on_gpus || spread.route.transport == DeviceTransport::vmm,
                        "--transport {} is between GPUs: use --gpus too",
                        to_string(spread.route.transport));
    if (spread.route.strategy == Strategy::automatic)
      spread.route.strategy = on_gpus ? Strategy::pipelined : Strategy::bulk;
    session.reaches_peers = on_gpus && spread.route.transport == DeviceTransport::vmm &&
                            needs_peer_access(spread.route.strategy);
    if (on_gpus && spread.route.exact) require_ordered_on_gpus(spread.route.strategy);
  });
}

void add_timeout_options(CLI::App* command, Session& session) {
  command->add_option("--timeout", session.timeout, "Seconds after which a silent rank is lost")
      ->check(CLI::Range(0.5, 86400.0))
      ->default_str("5");
  command
      ->add_option("--gpu-timeout", session.gpu_timeout,
                   "Seconds after which a rank is lost whose GPU neither finishes work nor waits "
                   "for another rank; 0: never")
      ->check(CLI::Range(0.0, 86400.0))
      ->default_str("600");
}

namespace {

// Sets the timeouts that the command line gives; `settings`: a WorldConfig or LaunchOptions.
template <class Settings>
void set_timeouts(const Session& session, Settings& settings) {
  const auto set = [](auto& timeout, std::optional<double> seconds) {
    if (seconds) timeout = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
  };
  set(settings.timeout, session.timeout);
  set(settings.work_timeout, session.gpu_timeout);
}

void require_own_gpus(World& world) {
  const auto ids = gather_values(world, current_gpu_id());
  for (std::size_t rank = 0; rank < ids.size(); ++rank) {
    const auto first = static_cast<std::size_t>(std::ranges::find(ids, ids[rank]) - ids.begin());
    require<UsageError>(first == rank,
                        "ranks {} and {} have the same GPU; start as many ranks as there are GPUs, "
                        "and let each process see all of its host's GPUs or one of its own",
                        first, rank);
  }
}

}  // namespace

void on_ranks(Session& session, const std::function<void(World&)>& body) {
  if (auto config = world_from_environment()) {
    set_timeouts(session, *config);
    session.quiet = session.quiet || config->rank != 0;
    set_progress(session.progress());
    const ThreadCount threads(thread_share());
    if (session.gpus > 0) use_gpu(gpu_of_rank(*config, gpu_count()));
    auto world = World::join(*config);
    require_equal<UsageError>(*world, "ranks have different settings", settings_of(session));
    if (session.gpus > 0) require_own_gpus(*world);
    if (session.reaches_peers) require_peer_access(*world);  // before anything is read
    // Ranks are interrupted together, which is no failure: none ends while another still works.
    std::exception_ptr interrupted;
    try {
      body(*world);
    } catch (const Interrupted&) {
      interrupted = std::current_exception();
    }
    world.reset();
    if (interrupted) std::rethrow_exception(interrupted);
    return;
  }
  const int ranks = std::max(session.ranks, session.gpus);
  if (session.gpus > 0)
    require<UsageError>(session.gpus <= gpu_count(), "the command asks for {}, but {}",
                        counted(static_cast<std::uint64_t>(session.gpus), "GPU"),
                        built_with_cuda() ? fmt::format("this host has {}", gpu_count())
                                          : "this build has no GPU engine");
  if (ranks > 1) {
    LaunchOptions options{.ranks = ranks};
    set_timeouts(session, options);
    session.exit_code = launch(options, session.arguments);
  } else {
    if (session.gpus > 0) use_gpu(0);
    body(*World::alone());
  }
}

std::string ranks_of(const World& world, const Session& session) {
  return counted(static_cast<std::uint64_t>(world.size()), session.gpus > 0 ? "GPU" : "rank");
}

const char* device_name(const Session& session) { return session.gpus > 0 ? "cuda" : "cpu"; }

Dataset read_graph(const std::string& path, const Session& session) {
  const Phase phase("reading " + path);
  return read_dataset(path, {.progress = session.progress()});
}

Dataset read_graph(World& world, const std::string& path, const Session& session) {
  Dataset dataset = read_graph(path, session);
  if (world.size() == 1) return dataset;
  const Phase phase("comparing the ranks' graphs");
  require_equal(world, "ranks read different graphs", fingerprint(dataset));
  return dataset;
}

Partition partition_for(World& world, const AnyCsr& graph, PartitionScheme scheme,
                        std::uint64_t seed) {
  const Phase phase(fmt::format("partitioning by {}", to_string(scheme)));
  if (scheme != PartitionScheme::metis || world.size() == 1)
    return make_partition(scheme, graph, world.size(), seed);
  Buffer<std::uint32_t> owner(vertex_count(graph));
  if (world.rank() == 0) {
    const Partition found = make_partition(scheme, graph, world.size(), seed);
    for (std::uint64_t v = 0; v < owner.size(); ++v)
      owner[v] = static_cast<std::uint32_t>(found.owner(v));
  }
  world.broadcast(std::as_writable_bytes(owner.span()), 0);
  return Partition::of_owners(world.size(), std::move(owner));
}

void print_graph(const std::string& out, const Dataset& dataset) {
  fmt::print("{}: {} vertices, {} edges\n", printable(out), dataset.vertices(), dataset.edges());
}

void print_json(const json& result) {
  json out = {{"schema", 1}};
  out.update(result);
  // In ASCII, and with U+FFFD for bytes that are not UTF-8, which names of files may hold.
  std::cout << out.dump(-1, ' ', true, json::error_handler_t::replace) << std::endl;
}

}  // namespace plait::cli
