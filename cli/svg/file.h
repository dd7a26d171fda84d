// Bars as an SVG file that stands alone, light or dark as the viewer is; heat_map.h has tables.
#pragma once

#include <string>
#include <vector>

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

}  // namespace plait::cli
