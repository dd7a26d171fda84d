// The result of a study as text, JSON and a plot.
#pragma once

#include <string>

#include "cli/cli.h"
#include "cli/study/table.h"
#include "plait/measure/study/engine.h"

namespace plait::cli {

// Facts about the run that all forms show.
struct StudyRun {
  const Study& study;
  const StudyResult& result;
  std::string ranks;  // "2 GPUs"
  int rank_count = 1;
  const char* device;  // "cpu" or "cuda"
  PartitionScheme partition;
};

void print_text(const StudyRun& run);
json to_json(const StudyRun& run);
// Returns the plot as an SVG file: a heat map if entries have cells, else bars.
std::string plot_of(const StudyRun& run);

// The list of all studies.
void print_studies();
json studies_to_json();

}  // namespace plait::cli
