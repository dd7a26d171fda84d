// Functions that the subcommands share. Each subcommand is one file: it declares its options and
// its work. Nothing here needs libtorch; ranks.h has the functions that need it.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plait/base/error.h"
#include "plait/graph/dataset.h"
#include "plait/io/io.h"
#include "plait/nn/config.h"
#include "plait/partition/partition.h"
#include "plait/plan/route.h"
#include "plait/reorder/reorder.h"

namespace plait::cli {

using nlohmann::json;

// Options that every command takes, and the command that was called.
struct Session {
  int ranks = 1;
  int gpus = 0;                // one rank per GPU; 0: on the CPU
  bool reaches_peers = false;  // GPUs must reach each other's memory
  bool needs_module = false;   // of the kernels that read by NVSHMEM's device functions
  // Why GPUs of several hosts cannot run the command together, and what to leave out; empty: they
  // can.
  std::string needs_one_host;
  // GPUs of several hosts need not reach each other, because those of each host have the whole
  // graph. If this is false, NVSHMEM must span the hosts.
  bool replica_per_host = false;
  // Seconds after which a silent rank is lost, and a rank whose GPU hangs (0: never). Without a
  // value, WorldConfig or the environment decides.
  std::optional<double> timeout, gpu_timeout;
  // Parts of the route that the user left open (decided_layout()), and whether to say how they were
  // chosen.
  bool open_strategy = false, open_partition = false, open_settings = false, explain = false;
  std::uint64_t seed = 0;
  ReadOptions reading;                          // of add_reading_options()
  ReorderMethod reorder = ReorderMethod::none;  // of the graph once it is read
  bool json = false;
  bool quiet = false;
  bool profile = false;               // show where the time went
  std::string trace;                  // file for a trace of the phases; empty: none
  const CLI::App* command = nullptr;  // the subcommand that was called
  // Options that name a file to write, or a folder; and options that name a file to read which an
  // output may replace.
  std::vector<const CLI::Option*> outputs, output_folders, replaceable;
  int exit_code = 0;

  bool progress() const { return !quiet; }
};

// Adds a subcommand with the common options; `run` is called after parsing.
CLI::App* add_command(CLI::App& app, Session& session, const std::string& name,
                      const std::string& description, std::function<void()> run);
// --json and --quiet.
void add_output_flags(CLI::App* command, Session& session);
// --profile and --trace, for a command that works for a while.
void add_profile_options(CLI::App* command, Session& session);
// Notes that the option names a file or folder that is written: all ranks must be given the same
// name, although they may read files by different names. Before the command begins, a file is
// refused that is also read, or that cannot be written.
CLI::Option* as_output(Session& session, CLI::Option* option);
CLI::Option* as_output_folder(Session& session, CLI::Option* option);
// Tells whether the option has been noted so.
bool is_output(const CLI::Option& option, const Session& session);
// Refuses, before all the work, files that the called command has to write but cannot.
void check_outputs(const Session& session);
// Text under the options of --help, shown as examples.
void add_examples(CLI::App* command, const std::string& text);

// A heading of --help and the options under it.
struct OptionGroup {
  const char* heading;
  std::vector<std::string> options;  // "--name"
};
// Puts a command's options under headings: headings of `groups`, and common ones for options that
// several commands have. Throws CLI::OptionNotFound if the command lacks an option of `groups`.
void group_options(CLI::App* command, const std::vector<OptionGroup>& groups);
// The form of --help. Commands that are added later take it from the program.
std::shared_ptr<CLI::FormatterBase> plain_help();

// Accepts numbers from `least` to `most`. Texts that are no numbers are refused before
// (check_values()).
template <class T>
CLI::Validator in_range(T least, T most) {
  const CLI::Range range(least, most);
  return {[=](std::string& text) {
            return range(text).empty() ? "" : fmt::format("{} is not in {}..{}", text, least, most);
          },
          range.get_description()};
}
// Accepts bytes as a whole number above 0, with K, M, G, T, P or E for powers of 1024.
CLI::Validator as_bytes();
// Drops values that stand in a list before: nothing is measured twice.
template <class T>
void take_each_once(std::vector<T>& values) {
  std::vector<T> once;
  for (const T& value : values)
    if (std::ranges::find(once, value) == once.end()) once.push_back(value);
  values = std::move(once);
}

// Adds to every option of the program and of its commands the checks that hold for all values of
// its type.
void check_values(CLI::App& app);
// Throws CLI::ValidationError for a list that has an empty item, as CLI11, which drops these, sees
// none. `words`: of the command line, before they are parsed.
void check_lists(const CLI::App& app, std::span<char* const> words);

// Shows in the help which words ("a, b, c") an option takes; completion reads them from there.
CLI::Option* show_words(CLI::Option* option, const std::string& list);

// Adds an option that takes values with commas between them, and shows the given ones as its
// default. (CLI11 would show a vector by whichever << of vectors other libraries bring.)
template <class T>
CLI::Option* add_list(CLI::App* command, const std::string& name, std::vector<T>& values,
                      const std::string& text) {
  CLI::Option* const option = command->add_option(name, values, text)->delimiter(',');
  return values.empty() ? option : option->default_str(fmt::format("[{}]", fmt::join(values, ",")));
}

// The words of an enumeration; empty: any text.
std::string words_of(Strategy);
std::string words_of(PartitionScheme);
std::string words_of(ReorderMethod);
std::string words_of(DeviceTransport);
std::string words_of(DType);
std::string words_of(NormKind);
std::string words_of(Normalize);
std::string words_of(MetricKind);
std::string words_of(Pool);
std::string words_of(StructurePlace);
std::string words_of(Precision);
std::string words_of(FirstLine);
template <class T>
std::string words_of(T) {
  return "";
}

// Returns the value of an option's word. Throws a UsageError that names the option for a word which
// `parse` does not know.
template <class T>
T value_of_word(const std::string& option, const std::string& word, T (*parse)(std::string_view)) {
  try {
    return parse(word);
  } catch (const UsageError& error) {
    throw UsageError(option + ": " + error.what());
  }
}

// An option whose words `parse` knows. A wrong word is refused before any rank starts.
template <class T>
CLI::Option* add_choice(CLI::App* command, const std::string& name, T& value,
                        T (*parse)(std::string_view), const std::string& standard,
                        const std::string& text) {
  value = parse(standard);
  CLI::Option* const option = command->add_option_function<std::string>(
      name,
      [&value, name, parse](const std::string& word) { value = value_of_word(name, word, parse); },
      text);
  if (const std::string words = words_of(value); !words.empty()) show_words(option, words);
  return option->default_str(standard);
}

// From here on Ctrl-C ends the program with one line and exit code 130; files appear whole or not
// at all. Training ends by itself instead. A signal that is ignored when the program starts, as in
// the background jobs of a script, stays ignored, here and below.
void end_on_interrupt();

// From now on, the first SIGINT, SIGTERM or SIGHUP sets the flag that is returned, for work that
// ends by itself when it is set. A second SIGINT or SIGTERM ends the program at once, as
// end_on_interrupt() does.
const std::atomic<bool>& stop_on_signals();

// "1 rank", "3 ranks".
std::string counted(std::uint64_t count, const char* noun);

// A graph to find an order for, on the current GPU if the command works on GPUs.
ReorderInput input_of(const Dataset& dataset, const Session& session);
// --vertices, --first-line and --directed, for a command that has an argument `graph` or `in`; they
// need it where it may be left out.
void add_reading_options(CLI::App* command, Session& session);
// --reorder.
void add_reorder_option(CLI::App* command, Session& session);
// Reads a graph as it is in its file, with a progress bar and warnings unless --quiet. The options
// of add_reading_options() come from the session.
Dataset read_file(const std::string& path, const Session& session, ReadOptions options = {});
// Does the same, then renumbers it in memory if --reorder says so.
Dataset read_graph(const std::string& path, const Session& session);
// Writes a graph, in the format of its name unless `format` names another (WriteOptions).
void write_graph(const Dataset& dataset, const std::string& path, const Session& session,
                 const std::string& format = "");
// Prints the line of a command that has written a graph.
void print_graph(const std::string& out, const Dataset& dataset);
// Prints one object on stdout, the command's whole result, with `schema` in front. With --profile
// it is printed when the profile is known (cli/profile.h).
void print_json(const json& result);

void add_doctor(CLI::App& app, Session& session);
void add_info(CLI::App& app, Session& session);
void add_generate(CLI::App& app, Session& session);
void add_convert(CLI::App& app, Session& session);
void add_reorder(CLI::App& app, Session& session);
void add_partition(CLI::App& app, Session& session);
void add_plan(CLI::App& app, Session& session);
void add_aggregate(CLI::App& app, Session& session);
void add_train(CLI::App& app, Session& session);
void add_infer(CLI::App& app, Session& session);
void add_apps(CLI::App& app, Session& session);
void add_walk(CLI::App& app, Session& session);
void add_tune(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);
void add_study(CLI::App& app, Session& session);
// The commands below `plait bench`, besides its own; add_bench() calls them.
void add_bench_messages(CLI::App& bench, Session& session);
void add_bench_model(CLI::App& bench, Session& session);
void add_bench_zoo(CLI::App& bench, Session& session);
void add_report(CLI::App& app, Session& session);
void add_completion(CLI::App& app, Session& session);

}  // namespace plait::cli
