#include "cli/svg/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/svg/plot.h"

namespace plait::cli {
namespace {

constexpr double kLeft = 190, kTop = 62, kCellWidth = 76, kCellHeight = 26;

constexpr const char* kStyle =
    "text { font: 12px system-ui, \"Segoe UI\", \"DejaVu Sans\", sans-serif; fill: #1d2430; } "
    ".title { font-weight: 600; } .end { text-anchor: end; } .middle { text-anchor: middle; } "
    ".on { fill: #ffffff; } .cell { fill: #14509e; } .page { fill: #ffffff; } "
    ".chosen { fill: none; stroke: #d9720a; stroke-width: 2.5; }";

std::string text_at(double x, double y, const char* classes, const std::string& content) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, classes,
                     escape_html(content));
}

std::string cell(const HeatMap& map, std::size_t r, std::size_t c, double least) {
  const double value = map.values[r][c];
  if (!std::isfinite(value)) return "";
  const double x = kLeft + kCellWidth * static_cast<double>(c),
               y = kTop + kCellHeight * static_cast<double>(r), share = least / value;
  std::string out = fmt::format(
      "<rect class=\"cell\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" "
      "fill-opacity=\"{:.3f}\"><title>{}, {}: {} ms, {:.2f} times the least</title></rect>\n",
      x, y, kCellWidth - 2, kCellHeight - 2, 0.06 + 0.94 * share * share, escape_html(map.rows[r]),
      escape_html(map.columns[c]), significant(value), value / least);
  out += text_at(x + kCellWidth / 2, y + kCellHeight / 2 + 3,
                 share * share > 0.5 ? "middle on" : "middle", significant(value));
  if (map.chosen[c] == static_cast<int>(r))
    out += fmt::format(
        "<rect class=\"chosen\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\"/>\n", x, y,
        kCellWidth - 2, kCellHeight - 2);
  return out;
}

}  // namespace

std::string draw_heat_map(const HeatMap& map) {
  const double width = std::max(kLeft + kCellWidth * static_cast<double>(map.columns.size()) + 12,
                                20 + 7.5 * static_cast<double>(map.title.size())),
               height = kTop + kCellHeight * static_cast<double>(map.rows.size()) + 12;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n"
      "<style>{3}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
      width, height, escape_html(map.title), kStyle);
  out += text_at(12, 20, "title", map.title);
  out += text_at(kLeft - 8, kTop - 8, "end", map.column_title);
  for (std::size_t c = 0; c < map.columns.size(); ++c) {
    out += text_at(kLeft + kCellWidth * (static_cast<double>(c) + 0.5), kTop - 8, "middle",
                   map.columns[c]);
    double least = std::numeric_limits<double>::infinity();
    for (const auto& row : map.values)
      if (std::isfinite(row[c])) least = std::min(least, row[c]);
    for (std::size_t r = 0; r < map.rows.size(); ++r) out += cell(map, r, c, least);
  }
  for (std::size_t r = 0; r < map.rows.size(); ++r)
    out += text_at(kLeft - 8, kTop + kCellHeight * (static_cast<double>(r) + 0.5) + 3, "end",
                   map.rows[r]);
  return out + "</svg>\n";
}

}  // namespace plait::cli
