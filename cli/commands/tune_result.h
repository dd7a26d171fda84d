// The result of plait tune: the measured times beside predicted ones, and how far the way that
// would be chosen without them is from the best.
#pragma once

#include <map>
#include <optional>

#include "cli/cli.h"
#include "plait/partition/quality.h"
#include "plait/plan/decide.h"

namespace plait::cli {

struct TuneResult {
  std::string graph;                                   // its name
  std::string ranks;                                   // "3 ranks"
  std::vector<std::uint64_t> widths;                   // measured
  Route standard;                                      // of a run for which nothing is known
  std::vector<MeasuredRoute> measured;                 // all widths of a way side by side
  std::vector<std::optional<double>> predicted_ms;     // of each measurement, if there is a model
  std::map<PartitionScheme, PartitionQuality> counts;  // of the partitions
};

// Returns the way that a run at this width takes by the measurements.
Route chosen_route(const TuneResult& result, std::uint64_t width);

// The route that training would choose at one width if nothing had been measured, and how much
// longer it takes than the best way measured: 0.05 is 5%. No regret: that way was not measured.
struct Unmeasured {
  Route route;
  std::optional<double> regret;
};
Unmeasured unmeasured_choice(const TuneResult& result, std::uint64_t width);

// Returns `rows` and `chosen` of plait tune --json.
json rows_to_json(const TuneResult& result);
json chosen_to_json(const TuneResult& result);
void print_times(const TuneResult& result);
// Writes the heat map of the measured times.
void write_heat_map(const TuneResult& result, const std::string& path);

}  // namespace plait::cli
