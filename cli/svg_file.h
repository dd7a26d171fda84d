// Plots as SVG files that stand alone, light or dark as the viewer is.
#pragma once

#include <string>
#include <vector>

#include "cli/svg_axis.h"

namespace plait::cli {

// Horizontal bars with names. A line on a bar goes from `low` to `high`.
struct NamedBar {
  std::string name;
  double value = 0, low = 0, high = 0;
  std::string note;  // behind the number
};
struct NamedBarPlot {
  std::string title, x_title;
  std::vector<NamedBar> bars;  // at least one
};
std::string bars_file(const NamedBarPlot& plot);

// A table of cells; darker cells have larger values. Cells that are not finite stay empty. The
// least value has a frame.
struct HeatMap {
  std::string title, row_title, column_title, value_title;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;  // by row, one per column
};
std::string heat_map_file(const HeatMap& map);

}  // namespace plait::cli
