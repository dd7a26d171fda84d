#include "cli/program.h"

namespace plait::cli {

void add_commands(CLI::App& app, Session& session) {
  add_doctor(app, session);
  add_info(app, session);
  add_generate(app, session);
  add_convert(app, session);
  add_reorder(app, session);
  add_partition(app, session);
  add_plan(app, session);
  add_aggregate(app, session);
  add_train(app, session);
  add_infer(app, session);
  add_apps(app, session);
  add_walk(app, session);
  add_tune(app, session);
  add_bench(app, session);
  add_study(app, session);
  add_report(app, session);
  add_completion(app, session);
}

}  // namespace plait::cli
