// The rates and latencies of a machine, as `plait doctor --measure` measures them, and a table of
// what is measured. Code that measures is in measure/cpu_rates.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace plait {

enum class Rate {
  local_rows,
  cached_rows,
  peer_rows,
  all_peer_rows,
  host_rows,
  copy,
  host_copy,
  engine_push,
  kernel_push,
  signal,
  launch,
  barrier,
  cache,
  threads,
};

// One row of the table of what is measured.
struct RateTraits {
  Rate rate;
  std::string_view name;  // in files and JSON
  std::string_view what;  // a phrase for people
  // "B/s", "s", "B", or "" for a number. A rate is that of one rank, the slowest, while all ranks
  // work at once, unless the phrase says otherwise.
  std::string_view unit;
  bool by_row;  // there is one value per number of bytes of a row
};

// Returns the row of a rate, and all rows in the order of the enumeration.
const RateTraits& traits_of(Rate rate);
std::span<const RateTraits> all_rates();
// Returns the rate of this name. Throws Error for a name that none has.
Rate parse_rate(std::string_view name);

// One measurement, in the unit of its rate. row_bytes is 0 unless the rate is measured by row.
struct MeasuredRate {
  Rate rate = Rate::copy;
  std::uint64_t row_bytes = 0;
  double value = 0;

  friend bool operator==(const MeasuredRate&, const MeasuredRate&) = default;
};
using MachineRates = std::vector<MeasuredRate>;

// Tells whether some machine may have this measurement: its value lies within bounds of its unit
// that are wider by orders of magnitude than any machine's, and it has row bytes if its rate is
// measured by row.
bool is_plausible(const MeasuredRate& measured);

// The bytes of rows that are measured, ascending: 32 to 4,096, powers of two.
std::span<const std::uint64_t> measured_row_bytes();

// Returns the value of a rate that is not measured by row, or at these bytes of a row.
std::optional<double> value_of(const MachineRates& rates, Rate rate, std::uint64_t row_bytes = 0);

// Returns the seconds that one row of so many bytes takes. Between the rows that were measured,
// times are interpolated; a narrower row takes as long as the narrowest, and the times of wider
// ones grow with their bytes. Returns nothing if the rate was not measured by row.
std::optional<double> seconds_of_row(const MachineRates& rates, Rate rate, double row_bytes);

}  // namespace plait
