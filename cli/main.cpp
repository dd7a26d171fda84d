// plait COMMAND [ARGS]: from the command line to one subcommand, and from every failure to one line
// on stderr and an exit code.
#include <csignal>
#include <iostream>

#include "cli/cli.h"
#include "plait/base/error.h"
#include "plait/world/report.h"

namespace {

using namespace plait;

void add_commands(CLI::App& app, cli::Session& session) {
  cli::add_doctor(app, session);
  cli::add_info(app, session);
  cli::add_generate(app, session);
  cli::add_convert(app, session);
  cli::add_partition(app, session);
  cli::add_plan(app, session);
  cli::add_aggregate(app, session);
  cli::add_train(app, session);
  cli::add_infer(app, session);
}

}  // namespace

int main(int argc, char** argv) {
  // Writing past a file size limit is then an error of write(), which is reported.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app{
      "Trains graph neural networks on one graph spread over many processors, and runs "
      "graph analytics the same way.",
      "plait"};
  app.set_version_flag("--version", std::string("plait ") + PLAIT_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("plait: ") + error.what() + "; see plait --help\n";
  });
  cli::Session session;
  session.arguments.assign(argv + 1, argv + argc);
  add_commands(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool wrong = app.exit(error) != 0;
    return static_cast<int>(wrong ? ExitCode::usage : ExitCode::right);
  } catch (const std::exception& error) {
    return report_error(error);
  }
  return session.exit_code;
}
