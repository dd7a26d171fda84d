// The studies of `plait study`: comparisons of the papers, one row of a table each; each paper has
// a table (entries.h). A study is a list of entries, which one engine
// (plait/measure/study/engine.h) measures on one graph.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plait/measure/study/entry.h"

namespace plait::cli {

// The settings of a study, from which its entries are made.
struct StudyInput {
  Route route;  // its strategy is open
  std::uint64_t width = 64;
  int ranks = 1;
};

struct Study {
  std::string_view name;
  std::string_view question;
  std::string_view paper;  // where the paper has it
  std::string_view claim;  // what the paper says
  bool needs_gpus;
  int least_ranks;
  StudyRatio ratio;
  // Options of the command that the study sets itself.
  std::vector<const char*> varies;
  // Throws UsageError for a route that cannot be.
  std::vector<StudyEntry> (*entries)(const StudyInput& input);
  bool trains = false;                   // the graph needs features and labels
  std::vector<const char*> unread = {};  // options of the command that change nothing here
};

// A comparison that a script makes, as it needs Python or several runs.
struct StudyScript {
  std::string_view name, question, paper, claim;
  std::string_view command;  // from the root of the sources
};

// Returns all studies, and all scripts.
std::span<const Study> studies();
std::span<const StudyScript> study_scripts();
// Throws a UsageError that lists all names, or, for the name of a script, tells its command.
const Study& study_of(std::string_view name);

}  // namespace plait::cli
