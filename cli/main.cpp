// plait-ranks COMMAND [ARGS]: the whole program. Users call `plait`, which hands over to it.
#include "cli/program.h"
#include "plait/world/report.h"

namespace {

using namespace plait;

void add_commands(CLI::App& app, cli::Session& session) {
  cli::add_doctor(app, session);
  cli::add_info(app, session);
  cli::add_generate(app, session);
  cli::add_convert(app, session);
  cli::add_reorder(app, session);
  cli::add_partition(app, session);
  cli::add_plan(app, session);
  cli::add_aggregate(app, session);
  cli::add_train(app, session);
  cli::add_infer(app, session);
  cli::add_tune(app, session);
  cli::add_bench(app, session);
  cli::add_study(app, session);
  cli::add_report(app, session);
  cli::add_completion(app, session);
}

}  // namespace

int main(int argc, char** argv) {
  return cli::run_program(argc, argv, {add_commands, report_error});
}
