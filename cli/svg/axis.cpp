#include "cli/svg/axis.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace plait::cli {
namespace {

// Returns the smallest of 1, 2 and 5 times a power of ten that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

int decimals_of(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
}

// Returns a text such as 1.5e-7 or 2e12.
std::string with_exponent(double value, int digits) {
  const auto power = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  return fmt::format("{:.{}g}e{}", value / std::pow(10, power), digits, power);
}

Unit unit_for(double largest, std::span<const Unit> units) {
  Unit found = units.front();
  for (const Unit& unit : units)
    if (largest >= unit.size) found = unit;
  return found;
}

}  // namespace

double Axis::place(double value) const {
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

std::string Axis::text(double tick) const {
  if (logarithmic) return significant(tick, 1);
  constexpr std::array<Unit, 5> kScales{{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}};
  const double largest = std::max(std::abs(low), std::abs(high));
  const Unit scale = largest < 1e4 ? kScales[0] : unit_for(largest, kScales);
  if (tick == 0) return "0";
  if (step < 1e-5) return with_exponent(tick, 3);
  return fmt::format("{:.{}f}{}", tick / scale.size, decimals_of(step / scale.size), scale.name);
}

Axis linear_axis(double low, double high, int most_ticks, bool whole) {
  Axis axis;
  if (high <= low) {
    const double room = whole ? 0.5 : std::max(std::abs(low) * 0.1, 1e-3);
    low -= room;
    high += room;
  }
  axis.step = round_step((high - low) / most_ticks);
  if (whole) axis.step = std::max(1.0, axis.step);
  const double first = std::floor(low / axis.step + 1e-9),
               last = std::ceil(high / axis.step - 1e-9);
  axis.low = whole ? low : first * axis.step;
  axis.high = whole ? high : last * axis.step;
  for (double k = first; k <= last; ++k) {
    const double tick = k * axis.step;
    if (tick >= axis.low - 1e-9 * axis.step && tick <= axis.high + 1e-9 * axis.step)
      axis.ticks.push_back(tick);
  }
  return axis;
}

Axis log_axis(double low, double high) {
  Axis axis{.low = low, .high = high, .logarithmic = true, .step = 0, .ticks = {}};
  const double first = std::floor(std::log10(low)), last = std::ceil(std::log10(high));
  const double stride = std::max(1.0, std::ceil((last - first) / 7));
  for (double power = first; power <= last; power += stride)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, power);
      if (factor > 1 && last - first > 3) continue;
      if (tick >= low && tick <= high) axis.ticks.push_back(tick);
    }
  return axis;
}

std::string significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{}", value);
  const int whole = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  if (whole > 7 || whole < -4) return with_exponent(value, digits);
  return fmt::format("{:.{}f}", value, std::max(0, digits - whole));
}

Unit byte_unit(double largest) {
  constexpr std::array<Unit, 5> kUnits{
      {{1, "B"}, {0x1p10, "KiB"}, {0x1p20, "MiB"}, {0x1p30, "GiB"}, {0x1p40, "TiB"}}};
  return unit_for(largest, kUnits);
}

Unit time_unit(double largest_seconds) {
  constexpr std::array<Unit, 4> kUnits{{{1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}}};
  return unit_for(largest_seconds, kUnits);
}

}  // namespace plait::cli
