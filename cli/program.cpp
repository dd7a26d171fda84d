#include "cli/program.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "plait/base/error.h"
#include "plait/base/failure.h"
#include "plait/base/limits.h"
#include "plait/base/memory.h"
#include "plait/base/parallel.h"
#include "plait/base/printable.h"
#include "plait/base/setting.h"
#include "plait/world/descriptors.h"

namespace plait::cli {
namespace {

// Returns CLI11's line on an error, in plain words if it is on the number of an option's values.
std::string plain_words(const CLI::App& app, const CLI::Error& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extra = app.remaining(true);
    if (app.get_subcommands().empty() && !extra.empty() && !extra[0].starts_with('-'))
      return fmt::format("there is no command '{}'", extra[0]);
    return fmt::format("unexpected arguments: {}", fmt::join(extra, " "));
  }
  if (error.get_name() != "ArgumentMismatch") return text;
  const std::string option = text.substr(0, text.find(':'));
  if (text.find(": At Most 1 required ") != std::string::npos)
    return option + " was given more than once";
  if (text.find(": 1 required ") != std::string::npos && text.ends_with(" missing"))
    return option + " needs a value";
  return text;
}

// Returns the exit code, once results are written: if stdout does not accept them, that is a
// failure.
int after_writing(int code, const Program& program) {
  errno = 0;
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (code != 0 || written) return code;
  const int error = output_error != 0 ? output_error : errno;
  const std::string why = error == 0 ? "" : fmt::format(": {}", std::strerror(error));
  return program.report(Error("the results cannot be written to stdout" + why));
}

// Settings are options: "--strategy bulk".
std::string option_text(std::string_view name, std::span<const std::string_view> values) {
  return "--" + plain_setting(name, values);
}

}  // namespace

int run_command(int argc, char** argv, const Program& program, Session& session) {
  write_settings_by(option_text);
  CLI::App app{
      "Trains graph neural networks on one graph that is spread over many processors, and "
      "runs graph analytics in the same way.",
      "plait"};
  app.set_version_flag("--version", std::string("plait ") + PLAIT_VERSION);
  app.require_subcommand(0, 1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return "plait: " + printable(plain_words(*failed, error)) + "; see plait --help\n";
  });
  app.formatter(plain_help());
  program.add_commands(app, session);
  check_values(app);
  try {
    require<UsageError>(thread_count() <= kMostThreads,
                        "OMP_NUM_THREADS asks for {} threads, but there can be {} at most",
                        thread_count(), kMostThreads);
    available_memory();  // refuses a wrong PLAIT_HOST_MEMORY
    check_lists(app, {argv, static_cast<std::size_t>(argc)});
    app.parse(argc, argv);
    require<UsageError>(!app.get_subcommands().empty(), "a command is missing; see plait --help");
  } catch (const CLI::ParseError& error) {
    const bool wrong = app.exit(error) != 0;
    return static_cast<int>(wrong ? ExitCode::usage : ExitCode::right);
  } catch (const std::exception& error) {
    return program.report(error);
  }
  return session.exit_code;
}

namespace {

// An error that leaves a thread of a library has nobody to take it, as where memory runs out.
[[noreturn]] void report_lost_error() {
  if (const auto error = std::current_exception()) try {
      std::rethrow_exception(error);
    } catch (const std::exception& known) {
      ::_exit(report_failure(known));
    }
  ::abort();
}

}  // namespace

int run_program(int argc, char** argv, const Program& program) {
  hold_standard_descriptors();
  std::set_terminate(report_lost_error);
  end_on_interrupt();
  // Writing past a file size limit is then a reported error of write() and not a signal.
  std::signal(SIGXFSZ, SIG_IGN);
  Session session;
  const int code = after_writing(run_command(argc, argv, program, session), program);
  if (session.gpus > 0) return code;  // profilers of GPUs write their results at exit()
  // Skip destructors: those of libtorch take a third of the time of a short command.
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace plait::cli
