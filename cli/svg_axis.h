// Where values stand on a plot's axis, and which of them are named there.
#pragma once

#include <string>
#include <vector>

namespace plait::cli {

// From values to 0..1. Ticks are round numbers within the axis.
struct Axis {
  double low = 0, high = 1;
  bool logarithmic = false;
  double step = 1;  // between ticks; of a logarithmic axis: 0
  std::vector<double> ticks;

  double place(double value) const;
  std::string text(double tick) const;
};

// Ends at round numbers. `whole`: ticks are integers, and the axis ends where the values do.
// Of values that are all the same it shows some room around them.
Axis linear_axis(double low, double high, int most_ticks, bool whole = false);
// 0 < low < high.
Axis log_axis(double low, double high);

// A number with `digits` significant ones and without an exponent where it can be: 1230, 0.0123.
std::string significant(double value, int digits = 3);

// In which to show numbers of which `largest` is the largest.
struct Unit {
  double size;
  const char* name;
};
Unit byte_unit(double largest);
Unit time_unit(double largest_seconds);

}  // namespace plait::cli
