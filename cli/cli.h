// What the subcommands share. Each subcommand is one file: it declares its options and its work.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plait/aggregate/route.h"
#include "plait/graph/dataset.h"
#include "plait/nn/config.h"
#include "plait/partition/partition.h"
#include "plait/world/world.h"

namespace plait::cli {

using nlohmann::json;

// Options that every command takes, and how the program was called.
struct Session {
  int ranks = 1;
  int gpus = 0;                // a rank each; 0: on the CPU
  bool reaches_peers = false;  // GPUs must reach each other's memory
  // Seconds after which a silent rank is lost, and one whose GPU stands still (0: never); by
  // default as WorldConfig or the environment says.
  std::optional<double> timeout, gpu_timeout;
  std::uint64_t seed = 0;
  bool json = false;
  bool quiet = false;
  std::vector<std::string> arguments;       // of the program, without its name
  const CLI::App* command = nullptr;        // the subcommand that was asked for
  std::vector<const CLI::Option*> outputs;  // those that name what a command writes
  int exit_code = 0;

  bool progress() const { return !quiet; }
};

// Adds a subcommand with the common options; `run` is called after parsing.
CLI::App* add_command(CLI::App& app, Session& session, const std::string& name,
                      const std::string& description, std::function<void()> run);
// --json and --quiet.
void add_output_flags(CLI::App* command, Session& session);
// Notes that the option names a file or folder that is written: ranks must all be given the same
// name, where they may read files by different ones.
CLI::Option* as_output(Session& session, CLI::Option* option);
// Text under the options of --help, shown as examples.
void add_examples(CLI::App* command, const std::string& text);

// Adds to every option of the program, its commands included, what holds for all values of its
// type.
void check_values(CLI::App& app);

// Says in the help which words an option takes, from where completion knows them: "a, b, c".
CLI::Option* show_words(CLI::Option* option, const std::string& list);

// Those of an enumeration; empty: any text.
std::string words_of(Strategy);
std::string words_of(PartitionScheme);
std::string words_of(DeviceTransport);
std::string words_of(NormKind);
std::string words_of(Normalize);
std::string words_of(MetricKind);
std::string words_of(Pool);
template <class T>
std::string words_of(T) {
  return "";
}

// An option whose words `parse` knows. A wrong one is refused before any rank starts.
template <class T>
CLI::Option* add_choice(CLI::App* command, const std::string& name, T& value,
                        T (*parse)(std::string_view), const std::string& standard,
                        const std::string& text) {
  value = parse(standard);
  CLI::Option* const option = command->add_option_function<std::string>(
      name, [&value, parse](const std::string& word) { value = parse(word); }, text);
  if (const std::string words = words_of(value); !words.empty()) show_words(option, words);
  return option->default_str(standard);
}

// How an operation is spread over ranks, besides their number.
struct Spread {
  Route route;
  PartitionScheme scheme;
};
// --strategy, --partition, --transport, --exact, --ranks and --gpus.
void add_spread_options(CLI::App* command, Session& session, Spread& spread);
void add_transport_option(CLI::App* command, DeviceTransport& transport);
// --timeout and --gpu-timeout, for a command that starts ranks.
void add_timeout_options(CLI::App* command, Session& session);

// Runs `body` on every rank: in the world that the environment names, on as many processes as ranks
// or GPUs were asked for, or right here for one. With --gpus, each rank's GPU is the current one.
// Sets session.exit_code. Throws UsageError, on all ranks, if they have different settings.
void on_ranks(Session& session, const std::function<void(World&)>& body);

// From here on Ctrl-C ends the program with one line and exit code 130, as files appear whole or
// not at all. Training ends by itself instead. A signal that the program was started to ignore, as
// scripts start what stands in the background, stays ignored, here and below.
void end_on_interrupt();

// From now on, the first SIGINT or SIGTERM sets the flag that is returned, for work that ends by
// itself when it is set. A second one ends the program at once, as end_on_interrupt() does.
const std::atomic<bool>& stop_on_signals();

// "1 rank", "3 ranks".
std::string counted(std::uint64_t count, const char* noun);
// "3 ranks", "3 GPUs": on what the work is done.
std::string ranks_of(const World& world, const Session& session);

// Where the work is done: "cuda" or "cpu".
const char* device_name(const Session& session);

// Reads a graph, with a progress bar unless --quiet.
Dataset read_graph(const std::string& path, const Session& session);
// The same on every rank. Collective. Throws Error, on all ranks, if they read different graphs.
Dataset read_graph(World& world, const std::string& path, const Session& session);

// The same partition on every rank; what takes long is found on rank 0 and sent. Collective.
Partition partition_for(World& world, const AnyCsr& graph, PartitionScheme scheme,
                        std::uint64_t seed);

// The line of a command that has written a graph.
void print_graph(const std::string& out, const Dataset& dataset);
// One object on stdout, the command's whole result. `schema` is put in front.
void print_json(const json& result);

void add_doctor(CLI::App& app, Session& session);
void add_info(CLI::App& app, Session& session);
void add_generate(CLI::App& app, Session& session);
void add_convert(CLI::App& app, Session& session);
void add_partition(CLI::App& app, Session& session);
void add_plan(CLI::App& app, Session& session);
void add_aggregate(CLI::App& app, Session& session);
void add_train(CLI::App& app, Session& session);
void add_infer(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);
void add_report(CLI::App& app, Session& session);
void add_completion(CLI::App& app, Session& session);

}  // namespace plait::cli
