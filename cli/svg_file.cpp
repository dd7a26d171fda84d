#include "cli/svg_file.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/report_style.h"
#include "cli/svg_draw.h"

namespace plait::cli {
namespace {

constexpr double kTop = 34;     // below the title
constexpr double kGlyph = 6.6;  // width of a character of 12
constexpr double kBar = 24;     // from one bar to the next
constexpr double kCellWidth = 46, kCellHeight = 28;

double text_width(const std::string& text) { return kGlyph * static_cast<double>(text.size()); }

std::string document(const std::string& title, double width, double height, const Svg& svg) {
  Svg out;
  out.add(R"(<?xml version="1.0" encoding="UTF-8"?>)");
  out.add(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" role="img" aria-label="{2}">)",
      width, height, escape_html(title));
  out.add("<style>{}</style>", kReportStyle);
  out.out += "<rect width=\"100%\" height=\"100%\" style=\"fill: var(--surface)\"/>\n";
  out.text(12, 20, "title", title);
  return out.out + svg.out + "</svg>\n";
}

}  // namespace

std::string bars_file(const NamedBarPlot& plot) {
  double largest = 0, names = 0, notes = 0;
  for (const NamedBar& bar : plot.bars) {
    largest = std::max(largest, bar.high);
    names = std::max(names, text_width(bar.name));
    notes = std::max(notes, text_width(bar.note) + 60);
  }
  const Axis axis = linear_axis(0, largest > 0 ? largest : 1, 5);
  const double left = 18 + names, count = static_cast<double>(plot.bars.size());
  const Frame frame{left, kTop, left + 300, kTop + 6 + count * kBar};
  Svg svg;
  draw_x_axis(svg, frame, axis, plot.x_title);
  for (std::size_t b = 0; b < plot.bars.size(); ++b) {
    const NamedBar& bar = plot.bars[b];
    const double y = frame.top + 4 + static_cast<double>(b) * kBar, middle = y + 9;
    svg.text(frame.left - 6, middle + 4, "end", bar.name);
    svg.add(R"(<rect class="c0 fill" x="{:.1f}" y="{:.1f}" width="{:.2f}" height="18"/>)",
            frame.left, y, frame.x(axis.place(bar.value)) - frame.left);
    const double low = frame.x(axis.place(bar.low)), high = frame.x(axis.place(bar.high));
    svg.line("axis", low, middle, high, middle);
    svg.text(high + 6, middle + 4, "", significant(bar.value) + bar.note);
  }
  const double width = std::max(frame.right + notes, text_width(plot.title) + 24);
  return document(plot.title, width, frame.bottom + 44, svg);
}

std::string heat_map_file(const HeatMap& map) {
  double largest = 0, least = std::numeric_limits<double>::infinity(), names = 0;
  for (const auto& row : map.values)
    for (const double value : row)
      if (std::isfinite(value)) largest = std::max(largest, value), least = std::min(least, value);
  for (const std::string& name : map.rows) names = std::max(names, text_width(name));
  const double left = 40 + names, top = kTop + 36;
  const double right = left + kCellWidth * static_cast<double>(map.columns.size());
  const double bottom = top + kCellHeight * static_cast<double>(map.rows.size());
  Svg svg;
  svg.text((left + right) / 2, kTop + 10, "middle title", map.column_title);
  svg.upright_title((top + bottom) / 2, map.row_title);
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    svg.text(left + kCellWidth * (static_cast<double>(c) + 0.5), top - 8, "middle small",
             map.columns[c]);
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = top + kCellHeight * static_cast<double>(r);
    svg.text(left - 6, y + kCellHeight / 2 + 4, "end", map.rows[r]);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double value = map.values[r][c], x = left + kCellWidth * static_cast<double>(c);
      if (!std::isfinite(value)) continue;
      const double share = largest > 0 ? value / largest : 0;
      svg.add(
          R"(<rect class="cell" x="{:.1f}" y="{:.1f}" width="{}" height="{}" fill-opacity="{:.3f}"/>)",
          x, y, kCellWidth, kCellHeight, 0.08 + 0.92 * share);
      svg.text(x + kCellWidth / 2, y + kCellHeight / 2 + 4,
               share > 0.5 ? "middle small on" : "middle small", significant(value));
      if (value == least)
        svg.add(
            R"(<rect class="c1" x="{:.1f}" y="{:.1f}" width="{}" height="{}" fill="none" stroke-width="3"/>)",
            x + 1.5, y + 1.5, kCellWidth - 3, kCellHeight - 3);
    }
  }
  svg.text(left, bottom + 20, "small", map.value_title);
  return document(map.title, std::max(right + 20, text_width(map.title) + 24), bottom + 34, svg);
}

}  // namespace plait::cli
