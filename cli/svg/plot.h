// Plots as figures of an HTML page: a caption, a legend, and an SVG that scales with the window.
// Colours are classes that the page's style sets for light and dark (report_style.h): c0 .. c7.
#pragma once

#include <string>
#include <vector>

#include "cli/svg/axis.h"

namespace plait::cli {

inline constexpr int kColours = 8;

// Returns `text` with the characters escaped that are special in HTML.
std::string escape_html(const std::string& text);

// Values at 0, 1, 2, ...; a value that is not finite leaves a gap.
struct Curve {
  std::string name;
  std::vector<double> values;
  int colour = 0;
  bool dashed = false;
  int marked = -1;  // a value that gets a dot
};
struct CurvePlot {
  std::string title, x_title, y_title;
  std::vector<Curve> curves;
};
// The axis is logarithmic if all values are above 0 and span more than a factor of 50.
std::string draw_curves(const CurvePlot& plot);

// Horizontal bars, each a stack of parts.
struct BarPart {
  std::string name;
  std::vector<double> values;  // one per bar
  int colour = 0;
};
struct BarPlot {
  std::string title, x_title;
  std::string bar;  // the word for a bar: "rank"; bars are numbered
  std::vector<BarPart> parts;
  Unit unit;  // of values
};
std::string draw_bars(const BarPlot& plot);

// A square of cells; darker cells have larger values.
struct MatrixPlot {
  std::string title, row_title, column_title;
  std::vector<std::vector<double>> rows;
  Unit unit;
};
std::string draw_matrix(const MatrixPlot& plot);

}  // namespace plait::cli
