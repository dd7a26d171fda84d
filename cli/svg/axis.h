// Positions of values on a plot's axis, and the values that are labelled there.
#pragma once

#include <string>
#include <vector>

namespace plait::cli {

// Maps values to 0..1. Ticks are round numbers within the axis.
struct Axis {
  double low = 0, high = 1;
  bool logarithmic = false;
  double step = 1;  // between ticks; 0 on a logarithmic axis
  std::vector<double> ticks;

  double place(double value) const;
  std::string text(double tick) const;
};

// The axis ends at round numbers. `whole`: ticks are integers, and the axis ends where the values
// do. If all values are the same, the axis extends around them.
Axis linear_axis(double low, double high, int most_ticks, bool whole = false);
// It must hold that 0 < low < high.
Axis log_axis(double low, double high);

// Formats a number with `digits` significant digits, without an exponent if possible: 1230, 0.0123.
std::string significant(double value, int digits = 3);

// The unit for numbers up to `largest`.
struct Unit {
  double size;
  const char* name;
};
Unit byte_unit(double largest);
Unit time_unit(double largest_seconds);

}  // namespace plait::cli
