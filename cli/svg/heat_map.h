// A heat map as an SVG file of its own, without a page around it.
#pragma once

#include <string>
#include <vector>

namespace plait::cli {

// Times in ms by row and column; a value that is not finite leaves its cell empty. A cell is the
// darker the closer its time is to the least of its column.
struct HeatMap {
  std::string title, column_title;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;
  std::vector<int> chosen;  // per column the row with a frame; -1: none
};

// Returns the text of the file.
std::string draw_heat_map(const HeatMap& map);

}  // namespace plait::cli
