// Elements of SVG that plots are drawn with. Internal to svg_plot.cpp and svg_file.cpp.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

#include "cli/svg/axis.h"
#include "cli/svg/plot.h"

namespace plait::cli {

inline constexpr double kPlotWidth = 460;  // in the SVG's own units; text is 12 high

// The rectangle in which data is drawn.
struct Frame {
  double left, top, right, bottom;

  double x(double share) const { return left + share * (right - left); }
  double y(double share) const { return bottom - share * (bottom - top); }
};

// Appends pieces of SVG.
struct Svg {
  std::string out;

  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    out += fmt::format(text, std::forward<Args>(args)...);
    out += '\n';
  }
  void text(double x, double y, const char* classes, const std::string& content) {
    add(R"(<text x="{:.1f}" y="{:.1f}" class="{}">{}</text>)", x, y, classes, escape_html(content));
  }
  // Writes the title at the left edge, around `y`.
  void upright_title(double y, const std::string& content) {
    add("<text transform=\"translate(13 {:.1f}) rotate(-90)\" class=\"middle title\">{}</text>", y,
        escape_html(content));
  }
  void line(const char* classes, double x1, double y1, double x2, double y2) {
    add(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", classes, x1, y1,
        x2, y2);
  }
};

inline void draw_x_axis(Svg& svg, const Frame& frame, const Axis& axis, const std::string& title) {
  for (const double tick : axis.ticks) {
    const double x = frame.x(axis.place(tick));
    svg.line("grid", x, frame.top, x, frame.bottom);
    svg.text(x, frame.bottom + 16, "middle", axis.text(tick));
  }
  svg.line("axis", frame.left, frame.bottom, frame.right, frame.bottom);
  svg.text((frame.left + frame.right) / 2, frame.bottom + 34, "middle title", title);
}

}  // namespace plait::cli
