// The result of plait tune: the measured times beside predicted ones, and how far the way that
// would be chosen without them is from the best.
#pragma once

#include <map>
#include <optional>

#include "cli/cli.h"
#include "plait/partition/quality.h"
#include "plait/plan/choose.h"
#include "plait/plan/settings_search.h"

namespace plait::cli {

// The search of settings of strategy get on one partition.
struct SettingsSearched {
  PartitionScheme partition;
  std::vector<SettingsTrial> tried;
};

struct TuneResult {
  std::string graph;                                   // its name
  std::string ranks;                                   // "3 ranks"
  std::vector<std::uint64_t> widths;                   // measured
  RouteQuestion question;                              // of a run, but for its widths
  std::vector<MeasuredRoute> measured;                 // all widths of a way side by side
  std::vector<std::optional<double>> predicted_ms;     // of each measurement, if there is a model
  std::map<PartitionScheme, PartitionQuality> counts;  // of the partitions
  std::vector<SettingsSearched> settings = {};         // with --settings
};

// Returns `rows`, `settings` and `chosen` of plait tune --json.
json rows_to_json(const TuneResult& result);
json settings_to_json(const TuneResult& result);
json chosen_to_json(const TuneResult& result);
void print_times(const TuneResult& result);
// Writes the heat map of the measured times.
void write_heat_map(const TuneResult& result, const std::string& path);

}  // namespace plait::cli
