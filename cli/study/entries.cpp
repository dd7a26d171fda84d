#include "cli/study/entries.h"

#include "plait/plan/route.h"

namespace plait::cli {

StudyEntry study_entry(std::string name, const StudyInput& in, Strategy strategy) {
  StudyEntry made{.name = std::move(name),
                  .options = {.route = in.route, .shards = {.transposed = false}},
                  .width = in.width};
  made.options.route.strategy = strategy;
  made.options.route = resolved(made.options.route);
  return made;
}
StudyEntry study_by(const StudyInput& in, Strategy strategy) {
  return study_entry(std::string(to_string(strategy)), in, strategy);
}
StudyEntry study_part(std::string name, const StudyInput& in, StudyPart part) {
  StudyEntry made = study_entry(std::move(name), in, Strategy::automatic);
  made.part = part;
  return made;
}
StudyEntry claimed(StudyEntry made, double claim) {
  made.claim = claim;
  return made;
}

}  // namespace plait::cli
