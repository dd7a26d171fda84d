// plait-ranks COMMAND [ARGS]: the whole program. Users call `plait`, which hands over to it.
#include "cli/program.h"
#include "plait/world/report.h"

int main(int argc, char** argv) {
  return plait::cli::run_program(argc, argv, {plait::cli::add_commands, plait::report_error});
}
