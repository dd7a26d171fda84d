// Measures the entries of a study on one graph.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plait/graph/dataset.h"
#include "plait/measure/bench.h"
#include "plait/measure/study/entry.h"
#include "plait/world/world.h"

namespace plait {

struct StudyRow {
  StudyEntry entry;
  Times times;
  double error = 0;                     // of a step's result, relative
  std::uint64_t bytes = 0;              // that a step brings to rank 0
  std::optional<double> ratio;          // none for work that is done once, or without the other
  std::vector<double> validation = {};  // of training: metric by epoch
};

struct StudyGraph {
  std::string name;
  std::uint64_t vertices = 0, edges = 0;
};

struct StudyResult {
  std::optional<StudyGraph> graph;  // none: the study reads no graph
  std::vector<StudyRow> rows;
  std::vector<std::pair<std::string, std::string>> refused;  // entries that do not fit, and why
};

struct StudySettings {
  std::string_view name;  // of the study, for the line that shows progress
  StudyRatio ratio = StudyRatio::speedup;
  // Reads or makes it, the same on all ranks; empty for a study that reads no graph.
  std::function<Dataset()> graph;
  std::uint64_t seed = 0;
  BenchEffort effort;
};

// Collective. Measures all entries in their order. The result of a step is compared with sums in
// double precision before it is timed. Work that is no part of a step is done as often as
// repetitions say, or until it has taken two seconds. Returns the result on all ranks. Throws
// MismatchError for a wrong result, DoesNotFitError if no entry fits.
StudyResult run_study(World& world, const std::vector<StudyEntry>& entries,
                      const StudySettings& settings);

}  // namespace plait
