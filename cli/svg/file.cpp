#include "cli/svg/file.h"

#include <algorithm>

#include "cli/commands/report_style.h"
#include "cli/svg/draw.h"

namespace plait::cli {
namespace {

constexpr double kBarsTop = 34;   // below the title
constexpr double kGlyph = 6.6;    // width of a character of 12
constexpr double kBarPitch = 24;  // from one bar to the next

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
  const Frame frame{left, kBarsTop, left + 300, kBarsTop + 6 + count * kBarPitch};
  Svg svg;
  draw_x_axis(svg, frame, axis, plot.x_title);
  for (std::size_t b = 0; b < plot.bars.size(); ++b) {
    const NamedBar& bar = plot.bars[b];
    const double y = frame.top + 4 + static_cast<double>(b) * kBarPitch, middle = y + 9;
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

}  // namespace plait::cli
