#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <map>

#include "cli/cli.h"
#include "cli/options/command_tree.h"
#include "cli/options/option_rules.h"
#include "cli/profile.h"
#include "cli/program.h"
#include "plait/base/error.h"
#include "plait/base/file.h"
#include "plait/base/gpu.h"
#include "plait/base/parallel.h"
#include "plait/base/printable.h"
#include "plait/base/progress.h"
#include "plait/base/system_limits.h"
#include "plait/graph/renumber.h"
#include "plait/io/mgg.h"
#include "plait/reorder/cuda/community_order.h"
#include "plait/world/launch.h"
#include "plait/world/phase.h"

namespace plait::cli {
namespace {

bool tells_interrupt = true;  // only the first rank prints the line

std::atomic<bool> stop_wanted{false};
// Times of the first signal, ms, from the parent and from all others; 0: none yet. They are kept
// apart because one Ctrl-C arrives twice: from the terminal, and from the launcher, which passes
// its own signal on.
std::atomic<std::int64_t> first_signal[2];

// A second signal, from the launcher besides the terminal's, may reach another thread meanwhile.
void end_now(int) {
  static std::atomic_flag told;
  if (told.test_and_set()) return;
  static constexpr char kText[] = "plait: interrupted\n";
  if (tells_interrupt && ::write(STDERR_FILENO, kText, sizeof kText - 1) < 0)
    ::_exit(static_cast<int>(ExitCode::failed));
  ::_exit(static_cast<int>(ExitCode::interrupted));
}

bool has(const std::vector<const CLI::Option*>& options, const CLI::Option& option) {
  return std::ranges::find(options, &option) != options.end();
}

// Refuses a file that is read and would be replaced by the file written to `path`.
void require_not_read(const std::string& path, const CLI::Option& output, const Session& session) {
  for (const CLI::Option* option : session.command->get_options()) {
    if (!takes_file(*option) || is_output(*option, session) || has(session.replaceable, *option))
      continue;
    std::error_code none;  // of names that are no files
    for (const std::string& named : option->results())
      for (const std::string& read : files_of_graph(named))
        require<UsageError>(!std::filesystem::equivalent(path, read, none),
                            "{}: is read as {}, and {} would replace it; give another name", path,
                            option->get_name(), output.get_name());
  }
}

// Returns whether this program was started with the signal ignored, as shells start the background
// jobs of a script. The signal then stays ignored.
bool is_ignored(int number) {
  struct sigaction found {};
  ::sigaction(number, nullptr, &found);
  return found.sa_handler == SIG_IGN;
}

// A second signal of the same origin ends the program at once. SIGHUP does not count: a closed
// terminal and its shell each send one, and a SIGTERM may follow when the session ends.
void want_stop(int number, siginfo_t* signal, void*) {
  stop_wanted = true;
  if (number == SIGHUP) return;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t ms = std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
  std::int64_t first = 0;
  if (first_signal[signal->si_pid == ::getppid()].compare_exchange_strong(first, ms)) return;
  if (ms - first >= kOneWish.count()) end_now(0);
}

}  // namespace

bool is_output(const CLI::Option& option, const Session& session) {
  return has(session.outputs, option) || has(session.output_folders, option);
}

void check_outputs(const Session& session) {
  std::map<std::filesystem::path, std::string> written;  // options by the files that they name
  const auto take = [&](const std::string& path, const CLI::Option& output) {
    require_not_read(path, output, session);
    std::error_code none;  // of names in folders that are not there
    auto file = std::filesystem::weakly_canonical(path, none);
    if (file.empty()) file = path;
    const auto [other, is_new] = written.try_emplace(std::move(file), output.get_name());
    require<UsageError>(is_new, "{}: is written as {} and as {}; give two names", path,
                        other->second, output.get_name());
    AtomicFile{path};
  };
  for (const CLI::Option* output : session.outputs)
    for (const std::string& named : output->results())
      for (const std::string& path : files_of_graph(named)) take(path, *output);
}

void end_on_interrupt() {
  const auto config = valid_world_from_environment();
  tells_interrupt = !config || config->rank == 0;
  if (!is_ignored(SIGINT)) std::signal(SIGINT, end_now);
}

const std::atomic<bool>& stop_on_signals() {
  struct sigaction action {};
  action.sa_sigaction = want_stop;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    if (!is_ignored(number)) ::sigaction(number, &action, nullptr);
  return stop_wanted;
}

void add_output_flags(CLI::App* command, Session& session) {
  command->add_flag("--json", session.json, "Print the result as one JSON object on stdout");
  command->add_flag("--quiet", session.quiet,
                    "Print no progress on stderr, and no warnings about files");
}

void add_profile_options(CLI::App* command, Session& session) {
  command->add_flag("--profile", session.profile,
                    "Show on stderr where the time went, by phases; with --json, in the result. "
                    "GPUs are waited for after each phase, which takes time");
  as_output(session,
            command->add_option("--trace", session.trace,
                                "File for a trace of the phases of all ranks, for Perfetto or "
                                "chrome://tracing"));
}

CLI::App* add_command(CLI::App& app, Session& session, const std::string& name,
                      const std::string& description, std::function<void()> run) {
  CLI::App* command = app.add_subcommand(name, description);
  add_output_flags(command, session);
  command->callback([&session, command, run = std::move(run)] {
    session.command = command;
    set_progress(session.progress());
    require_read(*command);
    require_threads(thread_count() - 1);                          // besides this one
    if (!valid_world_from_environment()) check_outputs(session);  // else once ranks have joined
    if (!command->get_subcommands().empty()) return run();        // a subcommand has done the work
    with_profile(session, run);
  });
  return command;
}

CLI::Option* as_output(Session& session, CLI::Option* option) {
  session.outputs.push_back(option);
  return option;
}

CLI::Option* as_output_folder(Session& session, CLI::Option* option) {
  session.output_folders.push_back(option);
  return option;
}

void add_examples(CLI::App* command, const std::string& text) {
  command->footer("Examples:\n" + text);
}

void add_reading_options(CLI::App* command, Session& session) {
  ReadOptions& reading = session.reading;
  CLI::Option* const vertices =
      command
          ->add_option(
              "--vertices", reading.vertices,
              "Number of vertices, if the file does not tell it: the ids of an edge list are "
              "then 0 to N - 1, and vertices without edges count")
          ->check(in_range(std::uint64_t{1}, std::uint64_t{1} << 56));
  CLI::Option* const first_line = add_choice(
      command, "--first-line", reading.first_line, parse_first_line, "auto",
      "What the first line of an edge list is; auto: counts of vertices and edges if they fit the "
      "other lines, else an edge");
  CLI::Option* const directed = command->add_flag(
      "--directed", reading.directed,
      "Read each line of an edge list as one edge, although a comment says that the graph is "
      "undirected");
  CLI::Option* const graph = command->get_option_no_throw("graph");
  if (graph == nullptr || graph->get_required()) return;
  for (CLI::Option* option : {vertices, first_line, directed}) option->needs(graph);
}

void add_reorder_option(CLI::App* command, Session& session) {
  add_choice(
      command, "--reorder", session.reorder, parse_reorder_method, "none",
      "Order of vertices to compute in; results keep the graph's own. See plait reorder, which "
      "does this once for all runs");
}

Dataset read_file(const std::string& path, const Session& session, ReadOptions options) {
  const Phase phase("reading " + path, "read graph");
  options.progress = options.warnings = session.progress();
  options.vertices = session.reading.vertices;
  options.first_line = session.reading.first_line;
  options.directed = session.reading.directed;
  return read_dataset(path, options);
}

void write_graph(const Dataset& dataset, const std::string& path, const Session& session,
                 const std::string& format) {
  const Timed timed("write");
  write_dataset(dataset, path, {.format = format, .warnings = session.progress()});
}

ReorderInput input_of(const Dataset& dataset, const Session& session) {
  // Plans are made for GPUs that this host may not have.
  const bool gpu = session.gpus > 0 && gpu_count() > 0;
  return {dataset.graph, dataset.symmetric, session.seed, gpu ? gpu_order_by_communities : nullptr};
}

Dataset read_graph(const std::string& path, const Session& session) {
  Dataset dataset = read_file(path, session);
  const Reordering found = find_order(session.reorder, input_of(dataset, session));
  return found.order.empty() ? dataset : renumbered(dataset, found.order.span());
}

void print_graph(const std::string& out, const Dataset& dataset) {
  fmt::print("{}: {} vertices, {} edges\n", printable(out), dataset.vertices(), dataset.edges());
}

void print_json(const json& result) {
  json out = {{"schema", 1}};
  out.update(result);
  if (hold_result(out)) return;
  // Print ASCII, with U+FFFD for bytes that are not UTF-8, which names of files may contain.
  errno = 0;
  std::cout << out.dump(-1, ' ', true, json::error_handler_t::replace) << '\n' << std::flush;
  if (!std::cout.good()) output_error = errno;
}

}  // namespace plait::cli
